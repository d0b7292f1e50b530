list(APPEND policy_sources flow/built_in.cc flow/documents.cc flow/flow_table.cc flow/retry_advice.cc flow/schema.cc flow/seat_book.cc flow/seats.cc)
list(APPEND policy_headers flow/built_in.h flow/documents.h flow/flow_table.h flow/retry_advice.h flow/schema.h flow/seat_book.h flow/seats.h)
