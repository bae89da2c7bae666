"""Makes a project of the variables that Snowplow's dbt packages are set up by."""
