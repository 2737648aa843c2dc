"""Results out: statistics, tables, figures, pages."""
