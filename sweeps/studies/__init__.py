"""Study files that are installed with mixsweep, for example `digits`."""
