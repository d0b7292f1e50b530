#include "wire/tls/kept_certificates.h"

#include "base/check.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace spillway::wire {

Result<bool> KeptCertificates::refresh(WallTime now) {
  SPILLWAY_TRY(authority, CertificateAuthority::open(folder_, now));
  SPILLWAY_TRY(authority_end, authority.end());
  std::map<std::string, KeyPair, std::less<>> pairs;
  std::map<std::string, WallTime, std::less<>> ends{{std::string(kAuthority), authority_end}};
  bool is_new = authority.certificate_pem() != authority_pem_;
  for (const Wanted& each : wanted_) {
    SPILLWAY_TRY(pair, authority.keep(each.file, each.request, now));
    SPILLWAY_TRY(end, end_of(pair));
    const auto before = pairs_.find(each.role);
    is_new = is_new || before == pairs_.end() || before->second.certificate_pem != pair.certificate_pem;
    ends.emplace(each.role, end);
    pairs.emplace(each.role, std::move(pair));
  }
  pairs_ = std::move(pairs);
  ends_ = std::move(ends);
  authority_pem_ = authority.certificate_pem();
  return is_new;
}

WallTime KeptCertificates::due() const {
  if (ends_.empty()) return {};
  const auto first = std::ranges::min_element(ends_, {}, [](const auto& each) { return each.second; });
  return first->second - std::chrono::duration_cast<microseconds>(CertificateAuthority::kRenewBefore);
}

const KeyPair& KeptCertificates::pair(std::string_view role) const {
  const auto found = pairs_.find(role);
  SPILLWAY_CHECK(found != pairs_.end());
  return found->second;
}

}  // namespace spillway::wire
