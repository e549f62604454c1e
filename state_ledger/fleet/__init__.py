"""The books of a fleet as pages read them: from whichever engine holds them, kept up to date in the background."""
