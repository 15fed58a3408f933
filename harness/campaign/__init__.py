"""Many runs as one: a sweep over a matrix, judged as a whole, and the calibration of the checks by planted bugs."""
