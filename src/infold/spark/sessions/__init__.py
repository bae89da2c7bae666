"""Builds and folds ``sessions`` models: islands of events, cut, merged and numbered."""
