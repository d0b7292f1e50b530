#include "wire/server/bounds/byte_ledger.h"

namespace spillway::wire {

void ByteLedger::Account::add(const std::string* data, std::size_t size) {
  if (++holders[data] == 1) bytes += size;
}

void ByteLedger::Account::remove(const std::string* data, std::size_t size) {
  const auto holder = holders.find(data);
  if (--holder->second > 0) return;
  holders.erase(holder);
  bytes -= size;
}

bool ByteLedger::fits(const Account* client, ClientRank rank, std::size_t size) const {
  if (all_.bytes == 0) return true;  // the only charge is allowed, whatever its size
  const bool vital = rank == ClientRank::kVital;
  if (all_.bytes + size > (vital ? bounds_.total_bytes_max : bounds_.ordinary_bytes_max)) return false;
  return vital || client == nullptr || client->bytes == 0 || client->bytes + size <= bounds_.client_bytes_max;
}

std::optional<ByteLedger::Charge> ByteLedger::charge(const std::string& client, ClientRank rank,
                                                     std::shared_ptr<const std::string> data, std::size_t waiting) {
  const std::lock_guard lock(mutex_);
  const auto known = by_client_.find(client);
  const bool free = waiting + data->size() <= bounds_.connection_bytes_free;
  const std::size_t more = all_.holds(data.get()) ? 0 : data->size();
  if (!free && !fits(known == by_client_.end() ? nullptr : &known->second, rank, more)) return std::nullopt;
  return enter(client, std::move(data));
}

ByteLedger::Charge ByteLedger::charge_anyway(const std::string& client, std::shared_ptr<const std::string> data) {
  const std::lock_guard lock(mutex_);
  return enter(client, std::move(data));
}

bool ByteLedger::has_room(const std::string& client, ClientRank rank) const {
  const std::lock_guard lock(mutex_);
  const auto known = by_client_.find(client);
  return fits(known == by_client_.end() ? nullptr : &known->second, rank, bounds_.room_bytes);
}

ByteLedger::Charge ByteLedger::enter(const std::string& client, std::shared_ptr<const std::string> data) {
  Charge charge;
  charge.client_ = by_client_.try_emplace(client).first;
  charge.client_->second.add(data.get(), data->size());
  all_.add(data.get(), data->size());
  publish();
  charge.data_ = std::move(data);
  charge.ledger_ = shared_from_this();
  return charge;
}

void ByteLedger::publish() {
  total_ = all_.bytes;
  gauge_.set(static_cast<double>(all_.bytes));
}

void ByteLedger::release(std::map<std::string, Account>::iterator client, const std::string& data) {
  const std::lock_guard lock(mutex_);
  client->second.remove(&data, data.size());
  if (client->second.holders.empty()) by_client_.erase(client);
  all_.remove(&data, data.size());
  publish();
}

}  // namespace spillway::wire
