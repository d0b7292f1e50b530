// The importance of a client and of its request to the cluster, when capacity is short. Pure.
// Thread: any.
#pragma once

#include "api/exchange/exchange.h"

#include <string_view>

namespace spillway::wire {

enum class ClientRank {
  kUnproven,  // has not authenticated
  kOrdinary,
  kVital,  // nodes, controllers, schedulers, administrators: without them pods do not run
};

ClientRank rank_of(const api::UserInfo& user);

enum class RequestClass {
  kHeartbeat,  // a vital client's lease, node status, health, metrics; late ones cost a node its pods
  kVital,
  kOrdinary,
};

RequestClass class_of(ClientRank rank, api::Method method, std::string_view target);

}  // namespace spillway::wire
