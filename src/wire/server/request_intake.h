// The way of a request from its head to the handler: authentication, a place for the connection, and an exchange for
// the answer. For one connection, whatever protocol it speaks. Thread: the connection's loop.
#pragma once

#include "wire/server/client_connection.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace spillway::wire {

class RequestIntake {
 public:
  /// `network`: the client's network, by which places are counted; `address`: its address in requests.
  RequestIntake(std::uint64_t connection, ConnectionOwner& owner, std::string network, std::string address);

  /// The client has connected, perhaps with a certificate. False: there is no room for it.
  bool accept(std::optional<PeerCertificate> peer);

  /// The name by which the client authenticated last, or its address.
  const std::string& client() const { return client_; }

  /// The rank that the client has shown so far.
  ClientRank rank() const { return rank_; }

  /// The sender of a request with this head; anonymous where the server authenticates no clients. The error is the
  /// answer.
  Result<UserPtr> identify(const api::Request& head);
  /// Counts the credentials that the user has shown. False: there is no place for the connection of such a client,
  /// which is counted.
  bool admit(const api::UserInfo& user);
  /// The body is too large for a client that has not authenticated.
  bool is_too_large(std::size_t body_bytes) const;
  Error too_large() const;

  /// Passes the request to the handler; `taker` gets its answer. `stream`: see HttpExchange. Else the answer to a
  /// refused client.
  std::variant<std::shared_ptr<HttpExchange>, api::Response> hand_over(api::Request request, UserPtr user,
                                                                       std::weak_ptr<AnswerTaker> taker,
                                                                       std::int32_t stream = 0);

  /// Adds the headers that every answer has.
  void complete(api::Response& answer) const;

  void count(Refusal refusal) const;

  /// Records in the audit log that `answer` refuses a request of this head. `user`: the sender, if known.
  void audit(const api::Request& head, const api::UserInfo* user, api::Response& answer) const;

 private:
  bool prove(ClientRank rank);

  std::uint64_t connection_;
  ConnectionOwner& owner_;
  std::string client_;
  std::string address_;
  std::optional<PeerCertificate> peer_;
  UserPtr of_certificate_;
  ClientRank rank_ = ClientRank::kUnproven;
};

}  // namespace spillway::wire
