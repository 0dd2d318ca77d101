"""Operating the service.

logs      one line an event, without anybody's words
metrics   counters over all workers, in Prometheus' format
traces    the same events as spans, for an OpenTelemetry collector
health    what serving needs
backup    copies of a live database, going back, and who uses a data directory
move      all rows into another database
"""
