"""Engines that run kernels, in threads or on Spark, and the wire form of messages between them."""
