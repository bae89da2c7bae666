"""How each kind of model is brought up to date on Spark, one file for each."""
