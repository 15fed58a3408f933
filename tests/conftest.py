"""What holds for all tests."""

import signal

from hypothesis import HealthCheck, settings

# A shell starts what it puts in the background with SIGINT ignored, and so would be every command that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A test that fails because the machine is busy says nothing about the code.
settings.register_profile("any machine", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
