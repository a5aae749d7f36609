"""State of SFC64 from six consecutive uniform draws.

| symbol | meaning |
| --- | --- |
| ``o_i`` | 64-bit outputs; a uniform double shows the upper 53 bits |
| ``a, b, c, k`` | the state; ``k`` counts outputs, and starts where seeding leaves it, so it is known |
| ``f(u), F(c)`` | ``u ^ (u >> 11)`` and ``f(9c) + 9·rotl(c, 24)``, modulo 2⁶⁴ |

A step is ``o = a + b + k``, ``a' = f(b)``, ``b' = 9c``, ``c' = rotl(c, 24) + o``. Two steps on, ``a = f(9c)``
and ``b = 9(rotl(c, 24) + o_0)``, so

    ``F(c_i) = o_{i+2} − 9·o_i − k_i − 2``,

of which all but some 15 low bits are seen. With the upper 24 bits of ``u = 9c`` guessed, the upper
24 bits of ``F`` give the next 24 of u, and then the others give the rest: 2²⁴ guesses, some carries
each, leave 2¹⁶ or so ``c_0``; the next draws leave one."""

import numpy as np

U = np.uint64
COUNTER = 13
"""Of numpy's SFC64 at its first output: it starts at 1 and seeding throws 12 outputs away."""
INVERSE_9 = U(pow(9, -1, 2**64))
HIDDEN = 11


def rotl(c):
    return (c << U(24)) | (c >> U(40))


def f(u):
    return u ^ (u >> U(11))


def F(c):
    return f(U(9) * c) + U(9) * rotl(c)


@np.errstate(over="ignore")  # arithmetic is modulo 2⁶⁴
def state_of(uniforms, counter=COUNTER):
    """States ``(a, b, c, k)`` before the third of six or more draws."""
    o = [int(u * 2**53) << HIDDEN for u in uniforms]
    slack = 10 << HIDDEN  # largest effect of the hidden bits of o_{i+2} and 9·o_i on F
    low = [
        (o[i + 2] - 9 * o[i] - counter - i - 2 - (9 << HIDDEN)) % 2**64 for i in range(len(o) - 2)
    ]
    c0 = candidates(low[0], slack)
    o0 = U(o[0]) + np.arange(1 << HIDDEN, dtype=U)
    states = []
    for c in c0:
        c1 = rotl(c) + o0
        for place in np.flatnonzero(F(c1) - U(low[1]) < U(slack)):
            states += third_states(c, o0[place], U(o[1]) + np.arange(1 << HIDDEN, dtype=U), counter)
    return [state for state in states if np.array_equal(following(state, len(o) - 2), uniforms[2:])]


def candidates(low, slack):
    """All ``c`` with F(c) in [low, low + slack), by their u = 9c."""
    found = []
    for start in range(0, 2**24, 2**16):
        top = np.arange(start, start + 2**16, dtype=U) << U(40)
        for borrow in (0, 1):
            # F = f(u) + (9c mod 2⁴⁰)·2²⁴ + 9·(c >> 40): its upper 24 bits determine u's lower
            # 40
            next24 = ((U(low + slack // 2 & 2**64 - 1) - f(top)) >> U(40)) - U(borrow) & U(
                2**24 - 1
            )
            u = top | next24 << U(16)
            rest = (U(low + slack // 2 & 2**64 - 1) - f(u) - (top >> U(40))) >> U(24)
            for carry in range(-1, 11):  # 9·(c >> 40) is u's upper 24 bits and up to 9·2²⁴ more
                v = rest - U(carry % 2**64) & U(2**40 - 1)
                c = INVERSE_9 * (top | v)
                found.append(c[F(c) - U(low) < U(slack)])
    return np.unique(np.concatenate(found))


def third_states(c0, o0, o1, counter):
    """States two steps after ``c0``, one for each possible ``o1``."""
    c1 = rotl(c0) + o0
    return [(f(U(9) * c0), U(9) * c1, rotl(c1) + o, counter + 2) for o in o1]


def following(state, count):
    """The uniform draws that follow a state."""
    return generator(state).random(count)


def generator(state):
    """numpy's generator in a given state."""
    bits = np.random.SFC64()
    bits.state = {
        "bit_generator": "SFC64", "state": {"state": np.array(state, dtype=U)}, "has_uint32": 0,
        "uinteger": 0,
    }  # fmt: skip
    return np.random.Generator(bits)
