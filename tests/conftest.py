"""What holds for all tests."""

import signal

# A shell starts what it puts in the background with SIGINT ignored, and so would be every command that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
