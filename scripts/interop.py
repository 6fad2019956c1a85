"""What the tests with other people's programs share: the scan, and counting what is right."""

SLICES, SIDE = 5, 600
RUN = ["reconstruct", "--sinograms", "sin", "--device", "cpu", "--quiet", "--pixel-size", "0.65um", "--mask"]
PHANTOM = ["phantom", "--size", str(SIDE), "--projections", "24", "--slices", str(SLICES), "-o", "sin"]


def check(truth, what):
    if not truth:
        raise SystemExit(f"FAILED: {what}")
    check.passed += 1


check.passed = 0
