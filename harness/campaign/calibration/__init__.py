"""The calibration of the checks: how often, and by what, each planted bug is found; and false alarms without one."""
