list(APPEND policy_sources addresses/cidr_set.cc addresses/ip_blocks.cc addresses/node_ranges.cc addresses/service_bands.cc)
list(APPEND policy_headers addresses/cidr_set.h addresses/ip_blocks.h addresses/node_range_flags.h addresses/node_ranges.h addresses/service_bands.h)
