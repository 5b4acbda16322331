"""Prints the polynomial coefficients of rng/normal_quantile.h; python3 rng/normal_quantile_fit.py (needs mpmath)."""

from mpmath import chebyfit, erfc, erfinv, exp, log, mp, mpf, pi, sqrt

mp.dps = 40


def lower(q):
    """z with Phi(-z) = q, by Newton's steps on log Phi from below."""
    z = mpf("0.5")
    for _ in range(200):
        tail, density = erfc(z / sqrt(2)) / 2, exp(-z * z / 2) / sqrt(2 * pi)
        step = (log(tail) - log(q)) * tail / density
        z += step
        if abs(step) < mpf("1e-36"):
            return z
    raise ValueError(q)


def central(square):
    """quantile(1/2 + t) / t as a function of t^2."""
    t = sqrt(square) if square > mpf("1e-20") else mpf("1e-10")
    return sqrt(2) * erfinv(2 * t) / t


def show(name, function, interval, terms):
    poly, error = chebyfit(function, [mpf(x) for x in interval], terms, error=True)
    print(f"{name}: {', '.join(float(c).hex() for c in reversed(poly))}  // error {float(error):.1e}")


show("central", central, ["0", "0.1225"], 17)
show("middle", lambda s: lower(exp(-s * s / 2)), ["1.94", "4"], 16)
show("far", lambda v: 1 / v - lower(exp(-1 / (2 * v * v))), [mpf(1) / mpf("12.5"), "0.25"], 18)
