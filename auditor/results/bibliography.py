"""The papers that the workbench cites, by key."""

from __future__ import annotations

import re

_WORKS = {
    "wiener1949": "N. Wiener. Extrapolation, Interpolation, and Smoothing of Stationary Time Series. MIT Press and Wiley, 1949.",
    "welch1967": (
        "P. D. Welch. The use of fast Fourier transform for the estimation of power spectra: a method based on time averaging over short, "
        "modified periodograms. IEEE Transactions on Audio and Electroacoustics 15(2), 70–73, 1967."
    ),
    "parzen1961": "E. Parzen. Mathematical considerations in the estimation of spectra. Technometrics 3(2), 167–190, 1961.",
    "yule1927": (
        "G. U. Yule. On a method of investigating periodicities in disturbed series, with special reference to Wolfer's sunspot numbers. "
        "Philosophical Transactions of the Royal Society A 226, 267–298, 1927."
    ),
    "schwarz1978": "G. Schwarz. Estimating the dimension of a model. Annals of Statistics 6(2), 461–464, 1978.",
    "stein1981": "C. M. Stein. Estimation of the mean of a multivariate normal distribution. Annals of Statistics 9(6), 1135–1151, 1981.",
    "baum1970": (
        "L. E. Baum, T. Petrie, G. Soules and N. Weiss. A maximization technique occurring in the statistical analysis of probabilistic "
        "functions of Markov chains. Annals of Mathematical Statistics 41(1), 164–171, 1970."
    ),
    "rabiner1989": (
        "L. R. Rabiner. A tutorial on hidden Markov models and selected applications in speech recognition. Proceedings of the IEEE 77(2), "
        "257–286, 1989."
    ),
    "li2012": (
        "Y. Li, M. Chen, Q. Li and W. Zhang. Enabling multilevel trust in privacy preserving data mining. "
        "IEEE Transactions on Knowledge and Data Engineering 24(9), 1598–1612, 2012."
    ),
    "li2011": (
        "Y. Li, M. Chen, Q. Li and W. Zhang. Enabling multi-level trust in privacy preserving data mining. "
        "Preprint of li2012, with all proofs, 2011."
    ),
    "huang2005": (
        "Z. Huang, W. Du and B. Chen. Deriving private information from randomized data. Proceedings of the ACM SIGMOD International "
        "Conference on Management of Data, 37–48, 2005."
    ),
    "bovy2011": (
        "J. Bovy, D. W. Hogg and S. T. Roweis. Extreme deconvolution: inferring complete distribution functions from noisy, heterogeneous "
        "and incomplete observations. The Annals of Applied Statistics 5(2B), 1657–1677, 2011."
    ),
    "minka2001": (
        "T. P. Minka. Expectation propagation for approximate Bayesian inference. Proceedings of the 17th Conference on Uncertainty in "
        "Artificial Intelligence, 362–369, 2001."
    ),
    "fellegi1969": (
        "I. P. Fellegi and A. B. Sunter. A theory for record linkage. Journal of the American Statistical Association 64(328), 1183–1210, "
        "1969."
    ),
    "villani2003": "C. Villani. Topics in Optimal Transportation. Graduate Studies in Mathematics 58, American Mathematical Society, 2003.",
    "robbins1956": (
        "H. Robbins. An empirical Bayes approach to statistics. Proceedings of the Third Berkeley Symposium on Mathematical Statistics and "
        "Probability 1, 157–163, 1956."
    ),
    "liu2008": (
        "K. Liu, C. Giannella and H. Kargupta. A survey of attack techniques on privacy-preserving data perturbation methods. "
        "In C. C. Aggarwal and P. S. Yu (eds.), Privacy-Preserving Data Mining: Models and Algorithms, Springer, 2008."
    ),
    "kantarcioglu2004": (
        "M. Kantarcıoğlu, J. Jin and C. Clifton. When do data mining results violate privacy? Proceedings of the 10th ACM SIGKDD "
        "International Conference on Knowledge Discovery and Data Mining, 599–604, 2004."
    ),
    "deming1940": (
        "W. E. Deming and F. F. Stephan. On a least squares adjustment of a sampled frequency table when the expected marginal totals are "
        "known. The Annals of Mathematical Statistics 11(4), 427–444, 1940."
    ),
    "cunningham2011": (
        "J. P. Cunningham, P. Hennig and S. Lacoste-Julien. Gaussian probabilities and expectation propagation. arXiv:1111.6832, 2011."
    ),
    "breiman1984": "L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone. Classification and Regression Trees. Wadsworth, 1984.",
    "quinlan1986": "J. R. Quinlan. Induction of decision trees. Machine Learning 1(1), 81–106, 1986.",
    "csiszar1975": (
        "I. Csiszár. I-divergence geometry of probability distributions and minimization problems. The Annals of Probability 3(1), "
        "146–158, 1975."
    ),
    "xiao2009": (
        "X. Xiao, Y. Tao and M. Chen. Optimal random perturbation at multiple privacy levels. "
        "Proceedings of the VLDB Endowment 2(1), 814–825, 2009."
    ),
    "agrawal2000": (
        "R. Agrawal and R. Srikant. Privacy-preserving data mining. Proceedings of the ACM SIGMOD International Conference on "
        "Management of Data, 439–450, 2000."
    ),
    "agrawal2005": (
        "R. Agrawal, R. Srikant and D. Thomas. Privacy preserving OLAP. Proceedings of the ACM SIGMOD International Conference on "
        "Management of Data, 251–262, 2005."
    ),
    "agrawal2001": (
        "D. Agrawal and C. C. Aggarwal. On the design and quantification of privacy preserving data mining algorithms. "
        "Proceedings of the ACM Symposium on Principles of Database Systems, 247–255, 2001."
    ),
    "kargupta2003": (
        "H. Kargupta, S. Datta, Q. Wang and K. Sivakumar. On the privacy preserving properties of random data perturbation techniques. "
        "Proceedings of the IEEE International Conference on Data Mining, 99–106, 2003."
    ),
    "guo2006": (
        "S. Guo, X. Wu and Y. Li. On the lower bound of reconstruction error for spectral filtering based privacy preserving data mining. "
        "Proceedings of PKDD, 520–527, 2006."
    ),
    "gavish2014": (
        "M. Gavish and D. L. Donoho. The optimal hard threshold for singular values is 4/√3. "
        "IEEE Transactions on Information Theory 60(8), 5040–5053, 2014."
    ),
    "gavish2017": (
        "M. Gavish and D. L. Donoho. Optimal shrinkage of singular values. IEEE Transactions on Information Theory 63(4), 2137–2152, 2017."
    ),
    "chen2007": (
        "K. Chen, G. Sun and L. Liu. Towards attack-resilient geometric data perturbation. Proceedings of the SIAM International "
        "Conference on Data Mining, 78–89, 2007."
    ),
    "liu2006": (
        "K. Liu, C. Giannella and H. Kargupta. An attacker's view of distance preserving maps for privacy preserving data mining. "
        "Proceedings of PKDD, 297–308, 2006."
    ),
    "liu2007": (
        "K. Liu. Multiplicative data perturbation for privacy preserving data mining. PhD thesis, University of Maryland, Baltimore "
        "County, 2007."
    ),
    "guo2007": (
        "S. Guo and X. Wu. Deriving private information from arbitrarily projected data. Proceedings of PAKDD, 84–95, 2007."
    ),
    "mukherjee2006": (
        "S. Mukherjee, Z. Chen and A. Gangopadhyay. A privacy-preserving technique for Euclidean distance-based mining algorithms using "
        "Fourier-related transforms. The VLDB Journal 15(4), 293–315, 2006."
    ),
    "szekely2004": "G. J. Székely and M. L. Rizzo. Testing for equal distributions in high dimension. InterStat 5, 2004.",
    "hyvarinen2000": (
        "A. Hyvärinen and E. Oja. Independent component analysis: algorithms and applications. Neural Networks 13(4–5), 411–430, 2000."
    ),
    "friedman2001": (
        "J. H. Friedman. Greedy function approximation: a gradient boosting machine. The Annals of Statistics 29(5), 1189–1232, 2001."
    ),
    "ke2017": (
        "G. Ke, Q. Meng, T. Finley, T. Wang, W. Chen, W. Ma, Q. Ye and T.-Y. Liu. LightGBM: a highly efficient gradient boosting decision "
        "tree. Advances in Neural Information Processing Systems 30, 3146–3154, 2017."
    ),
    "dwork2006": (
        "C. Dwork, F. McSherry, K. Nissim and A. Smith. Calibrating noise to sensitivity in private data analysis. Theory of Cryptography "
        "Conference, LNCS 3876, 265–284, 2006."
    ),
    "koufogiannis2015": (
        "F. Koufogiannis, S. Han and G. J. Pappas. Gradual release of sensitive data under differential privacy. arXiv 1504.00429, 2015; "
        "Journal of Privacy and Confidentiality 7(2), 2017."
    ),
    "dalenius1981": "T. Dalenius. A simple procedure for controlled rounding. Statistisk Tidskrift 19(3), 202–208, 1981.",
    "dalenius1982": (
        "T. Dalenius and S. P. Reiss. Data-swapping: a technique for disclosure control. Journal of Statistical Planning and Inference "
        "6(1), 73–85, 1982."
    ),
    "heer1993": (
        "G. R. Heer. A bootstrap procedure to preserve statistical confidentiality in contingency tables. International Seminar on "
        "Statistical Confidentiality, Eurostat, 261–271, 1993."
    ),
    "skinner1994": (
        "C. Skinner, C. Marsh, S. Openshaw and C. Wymer. Disclosure control for census microdata. Journal of Official Statistics 10(1), "
        "31–51, 1994."
    ),
    "moore1996": (
        "R. A. Moore. Controlled data-swapping techniques for masking public use microdata sets. Statistical Research Division Report RR "
        "96-04, U.S. Bureau of the Census, 1996."
    ),
    "gouweleeuw1998": (
        "J. M. Gouweleeuw, P. Kooiman, L. C. R. J. Willenborg and P.-P. de Wolf. Post randomisation for statistical disclosure control: "
        "theory and implementation. Journal of Official Statistics 14(4), 463–478, 1998."
    ),
    "domingo2002": (
        "J. Domingo-Ferrer and J. M. Mateo-Sanz. Practical data-oriented microaggregation for statistical disclosure control. IEEE "
        "Transactions on Knowledge and Data Engineering 14(1), 189–201, 2002."
    ),
    "kim2003": (
        "J. J. Kim and W. E. Winkler. Multiplicative noise for masking continuous data. Research Report Series, Statistics 2003-01, U.S. "
        "Bureau of the Census, 2003."
    ),
    "aggarwal2004": (
        "C. C. Aggarwal and P. S. Yu. A condensation approach to privacy preserving data mining. In Advances in Database Technology, EDBT "
        "2004, LNCS 2992, 183–199."
    ),
    "hundepool2012": (
        "A. Hundepool, J. Domingo-Ferrer, L. Franconi, S. Giessing, E. Schulte Nordholt, K. Spicer and P.-P. de Wolf. Statistical "
        "Disclosure Control. Wiley, 2012."
    ),
    "rosenblatt1952": (
        "M. Rosenblatt. Remarks on a multivariate transformation. The Annals of Mathematical Statistics 23(3), 470–472, 1952."
    ),
    "samarati2001": (
        "P. Samarati. Protecting respondents' identities in microdata release. IEEE Transactions on Knowledge and Data Engineering "
        "13(6), 1010–1027, 2001."
    ),
    "machanavajjhala2007": (
        "A. Machanavajjhala, J. Gehrke, D. Kifer and M. Venkitasubramaniam. ℓ-diversity: privacy beyond k-anonymity. "
        "ACM Transactions on Knowledge Discovery from Data 1(1), 2007."
    ),
    "li2007": (
        "N. Li, T. Li and S. Venkatasubramanian. t-closeness: privacy beyond k-anonymity and ℓ-diversity. "
        "Proceedings of the International Conference on Data Engineering, 106–115, 2007."
    ),
    "wong2006": (
        "R. C.-W. Wong, J. Li, A. W.-C. Fu and K. Wang. (α, k)-anonymity: an enhanced k-anonymity model for privacy-preserving data "
        "publishing. Proceedings of the ACM SIGKDD Conference, 754–759, 2006."
    ),
    "domingo2004": (
        "J. Domingo-Ferrer, F. Sebé and J. Castellà-Roca. On the security of noise addition for privacy in statistical databases. Privacy "
        "in Statistical Databases, LNCS 3050, 149–161, 2004."
    ),
    "zhu2004": (
        "Y. Zhu and L. Liu. Optimal randomization for privacy preserving data mining. Proceedings of the ACM SIGKDD Conference, 761–766, "
        "2004."
    ),
    "wang2007": (
        "K. Wang, B. C. M. Fung and P. S. Yu. Handicapping attacker's confidence: an alternative to k-anonymization. Knowledge and "
        "Information Systems 11(3), 345–368, 2007."
    ),
    "zhang2007": (
        "Q. Zhang, N. Koudas, D. Srivastava and T. Yu. Aggregate query answering on anonymized tables. Proceedings of the International "
        "Conference on Data Engineering, 116–125, 2007."
    ),
    "aggarwal2005": (
        "C. C. Aggarwal. On k-anonymity and the curse of dimensionality. Proceedings of the VLDB Conference, 901–909, 2005."
    ),
    "laurent2000": (
        "B. Laurent and P. Massart. Adaptive estimation of a quadratic functional by model selection. The Annals of Statistics 28(5), "
        "1302–1338, 2000."
    ),
    "lefevre2006": (
        "K. LeFevre, D. J. DeWitt and R. Ramakrishnan. Mondrian multidimensional k-anonymity. Proceedings of the International "
        "Conference on Data Engineering, 2006."
    ),
    "mironov2012": (
        "I. Mironov. On significance of the least significant bits for differential privacy. Proceedings of the ACM Conference on "
        "Computer and Communications Security, 650–661, 2012."
    ),
    "jin2022": (
        "J. Jin, E. McMurtry, B. I. P. Rubinstein and O. Ohrimenko. Are we there yet? Timing and floating-point attacks on differential "
        "privacy systems. Proceedings of the IEEE Symposium on Security and Privacy, 473–488, 2022."
    ),
    "cover2006": "T. M. Cover and J. A. Thomas. Elements of Information Theory, second edition. Wiley, 2006.",
    "clopper1934": (
        "C. J. Clopper and E. S. Pearson. The use of confidence or fiducial limits illustrated in the case of the binomial. "
        "Biometrika 26(4), 404–413, 1934."
    ),
    "ghosh2009": (
        "A. Ghosh, T. Roughgarden and M. Sundararajan. Universally utility-maximizing privacy mechanisms. Proceedings of the ACM "
        "Symposium on Theory of Computing, 351–360, 2009."
    ),
    "skellam1946": (
        "J. G. Skellam. The frequency distribution of the difference between two Poisson variates belonging to different populations. "
        "Journal of the Royal Statistical Society 109(3), 296, 1946."
    ),
    "massart1990": (
        "P. Massart. The tight constant in the Dvoretzky–Kiefer–Wolfowitz inequality. The Annals of Probability 18(3), 1269–1283, 1990."
    ),
    "brockwell2007": (
        "A. E. Brockwell. Universal residuals: a multivariate transformation. Statistics and Probability Letters 77(14), 1473–1478, 2007."
    ),
    "dong2022": (
        "J. Dong, A. Roth and W. J. Su. Gaussian differential privacy. Journal of the Royal Statistical Society B 84(1), 3–37, 2022 "
        "(numbers of results as in arXiv 1905.02383)."
    ),
    "balle2018": (
        "B. Balle and Y.-X. Wang. Improving the Gaussian mechanism for differential privacy: analytical calibration and optimal denoising. "
        "Proceedings of ICML, 394–403, 2018."
    ),
    "bun2016": (
        "M. Bun and T. Steinke. Concentrated differential privacy: simplifications, extensions, and lower bounds. Proceedings of TCC, "
        "635–658, 2016."
    ),
    "agarwal2021": (
        "N. Agarwal, P. Kairouz and Z. Liu. The Skellam mechanism for differentially private federated learning. Advances in Neural "
        "Information Processing Systems 34, 2021."
    ),
    "hoeffding1956": (
        "W. Hoeffding. On the distribution of the number of successes in independent trials. The Annals of Mathematical Statistics 27(3), "
        "713–721, 1956."
    ),
    "holm1979": "S. Holm. A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6(2), 65–70, 1979.",
    "read2002": "A. L. Read. Presentation of search results: the CLs technique. Journal of Physics G 28(10), 2693–2704, 2002.",
    "schuirmann1987": (
        "D. J. Schuirmann. A comparison of the two one-sided tests procedure and the power approach for assessing the equivalence of "
        "average bioavailability. Journal of Pharmacokinetics and Biopharmaceutics 15, 657–680, 1987."
    ),
}


def keys() -> list[str]:
    """Return every key, sorted."""
    return sorted(_WORKS)


def text(key: str) -> str:
    """Return the reference behind a key.

    Raises
    ------
    KeyError
        There is no such key.
    """
    return _WORKS[key]


def keys_in(reference: str) -> list[str]:
    """Return the keys that a reference names, in its order: of ``guo2006; liu2008, section 3.3`` both."""
    return [key for key in re.findall(r"[a-z]+\d{4}", reference) if key in _WORKS]


def cited(references: list[str]) -> list[str]:
    """Return the keys that references such as ``li2012, eq. 6`` name, once each, sorted."""
    return sorted({key for reference in references for key in keys_in(reference)})
