// Access to a node's server: how callers are authenticated, and how they are authorized. Defaults are upstream's.
// Thread: any (plain values). Source: Kubernetes docs, "Kubelet authentication/authorization".
#pragma once

#include "base/time.h"

#include <string>

namespace spillway::agent {

/// The treatment of callers that show neither a certificate nor a token that can be reviewed.
enum class Strangers { kRefused, kAnonymous };

enum class TokenReviews { kOff, kOn };

/// kAsked: the API server authorizes (SubjectAccessReview). kGranted: every authenticated user may do everything.
enum class Rights { kAsked, kGranted };

/// Gate KubeletFineGrainedAuthz: health, pods and configuration of a node have subresources of their own.
enum class FineGrained { kOff, kOn };

struct GateSettings {
  Strangers strangers = Strangers::kRefused;
  TokenReviews token_reviews = TokenReviews::kOn;
  Rights rights = Rights::kAsked;
  Duration token_life = minutes(2);  // lifetime of a cached answer
  Duration allowed_life = minutes(5);
  Duration denied_life = seconds(30);
  FineGrained fine_grained = FineGrained::kOff;
  std::string client_authority_file;  // signs the certificates that are trusted; empty: the API server's authority
};

}  // namespace spillway::agent
