list(APPEND policy_sources dns/cluster_records.cc dns/endpoint_book.cc dns/names.cc)
list(APPEND policy_headers dns/cluster_records.h dns/endpoint_book.h dns/names.h dns/record.h)
