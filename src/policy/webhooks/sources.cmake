list(APPEND policy_sources
  webhooks/conversion_review.cc webhooks/match.cc webhooks/match_conditions.cc webhooks/review_answer.cc webhooks/review_request.cc webhooks/webhook.cc)
list(APPEND policy_headers
  webhooks/conversion_review.h webhooks/match.h webhooks/match_conditions.h webhooks/review_answer.h webhooks/review_request.h webhooks/webhook.h)
