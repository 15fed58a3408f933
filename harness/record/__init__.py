"""The stored form of a run: its folder, its journal, its history, and who may write there."""
