"""Reports: statistics, tables, figures and pages, computed from the stored results of studies."""
