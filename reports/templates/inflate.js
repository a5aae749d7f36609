"use strict";
// Inflate (RFC 1951), at once. DecompressionStream would come to its end after the load event, for which a browser that only prints the
// page to PDF waits: its charts would be missing.
const inflated = (() => {
  const LENGTH = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
  const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
  const DISTANCE = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577,
  ];
  const DISTANCE_BITS = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];
  const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
  const LONGEST = 15;

  // A canonical Huffman code: how many codewords of each length there are, and their symbols in order.
  function coded(lengths) {
    const count = new Uint16Array(LONGEST + 1);
    const next = new Uint16Array(LONGEST + 2);
    const symbols = new Uint16Array(lengths.length);
    for (const length of lengths) count[length] += 1;
    count[0] = 0;
    for (let length = 1; length <= LONGEST; length += 1) next[length + 1] = next[length] + count[length];
    lengths.forEach((length, symbol) => { if (length) symbols[next[length]++] = symbol; });
    return { count, symbols };
  }

  const FIXED = [
    coded(Array.from({ length: 288 }, (_, at) => (at < 144 ? 8 : at < 256 ? 9 : at < 280 ? 7 : 8))),
    coded(Array.from({ length: 30 }, () => 5)),
  ];

  // `size` bytes come out; what is no such stream is an error.
  return (input, size) => {
    const output = new Uint8Array(size);
    let [at, held, bits, written] = [0, 0, 0, 0];

    function take(wanted) {
      while (bits < wanted) {
        if (at >= input.length) throw new Error("packed text ends early");
        held |= input[at++] << bits;
        bits += 8;
      }
      const value = held & ((1 << wanted) - 1);
      held >>>= wanted;
      bits -= wanted;
      return value;
    }

    function symbol({ count, symbols }) {
      let [code, first, index] = [0, 0, 0];
      for (let length = 1; length <= LONGEST; length += 1) {
        code |= take(1);
        if (code - first < count[length]) return symbols[index + code - first];
        index += count[length];
        first = (first + count[length]) << 1;
        code <<= 1;
      }
      throw new Error("packed text has no such codeword");
    }

    function stored() {
      held = bits = 0;
      const length = input[at] | (input[at + 1] << 8);
      if (at + 4 + length > input.length) throw new Error("packed text ends early");
      output.set(input.subarray(at + 4, at + 4 + length), written);
      at += 4 + length;
      written += length;
    }

    function described() {
      const [literals, distances, described] = [take(5) + 257, take(5) + 1, take(4) + 4];
      const lengths = new Array(ORDER.length).fill(0);
      for (let index = 0; index < described; index += 1) lengths[ORDER[index]] = take(3);
      const code = coded(lengths);
      const found = [];
      while (found.length < literals + distances) {
        const what = symbol(code);
        const [value, times] = what < 16 ? [what, 1]
          : what === 16 ? [found[found.length - 1], 3 + take(2)]
            : [0, what === 17 ? 3 + take(3) : 11 + take(7)];
        for (let time = 0; time < times; time += 1) found.push(value);
      }
      return [coded(found.slice(0, literals)), coded(found.slice(literals))];
    }

    function block([literals, distances]) {
      for (let what = symbol(literals); what !== 256; what = symbol(literals)) {
        if (what < 256) output[written++] = what;
        else {
          const end = written + LENGTH[what - 257] + take(LENGTH_BITS[what - 257]);
          const far = symbol(distances);
          const back = DISTANCE[far] + take(DISTANCE_BITS[far]);
          // byte by byte, as a copy may reach into itself
          for (; written < end; written += 1) output[written] = output[written - back];
        }
      }
    }

    for (let last = 0; !last;) {
      last = take(1);
      const kind = take(2);
      if (kind === 0) stored();
      else block(kind === 1 ? FIXED : described());
    }
    if (written !== size) throw new Error("packed text has another length");
    return output;
  };
})();
