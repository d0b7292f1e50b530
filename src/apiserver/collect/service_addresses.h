// The addresses of Services as objects: one IPAddress for each, created soon after the Service and deleted soon after
// it, and the ServiceCIDR `kubernetes` with the range they are from. Addresses are reserved by the write of the Service
// itself (write/reservations.h), so none of these objects decides which address is free. Nothing is written before a
// server has announced its address. Objects are read and compared a slice in each turn of the loop. Thread: loop.
// Bounds: kCollectorWritesMax writes in flight, kSliceCost bytes read and kSliceWrites writes begun in a slice; a
// failed write is retried after kRetry. Source: Kubernetes API reference, "IPAddress", "ServiceCIDR"; upstream's
// controllers "ipallocator repair" and "defaultservicecidr".
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/resource/slice_queue.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace spillway::apiserver {

class ServiceAddresses final : public Collector {
 public:
  static constexpr Duration kRetry = seconds(10);
  /// Writes that a slice begins, of about 0.2 ms each.
  static constexpr std::size_t kSliceWrites = 8;

  ServiceAddresses(Core& core, Writer& writer, Remover& remover);

  /// Clients can reach this server: from now on the objects are kept.
  void announce();

  /// Number of Services read, of addresses found and of addresses compared so far.
  std::size_t steps() const { return steps_; }

  /// Number of addresses whose object is being written.
  std::size_t writing() const { return busy_.size(); }

 private:
  struct Owner {
    std::string ns;
    std::string name;

    friend bool operator==(const Owner&, const Owner&) = default;
  };

  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  void add_service(const StoredObject& service);
  void drop_service(const StoredObject& service);
  /// A write may begin, or an object be read.
  bool has_work() const;
  void act_in_slice();
  /// Reads what is stored, from where the last slice ended. False: the slice is used up.
  bool read_on(SliceBudget& budget);
  bool take(SliceBudget& budget, std::size_t cost);
  /// The cost of comparing an address.
  std::size_t cost_of(const std::string& address) const;
  /// Creates or deletes the IPAddress, if it has to be.
  void sync_address(const std::string& address);
  void create_address(const std::string& address, const Owner& owner);
  void remove_address(const std::string& address, const StoredObject& there);
  void on_address_done(const std::string& address, const api::Status* failure);
  /// Creates the ServiceCIDR, or sets its condition.
  void sync_range();
  void on_range_done(const api::StatusResult<Written>& result);

  Core& core_;
  Writer& writer_;
  Remover& remover_;
  const ResourceCache& services_;
  const ResourceCache& addresses_;
  const ResourceCache& ranges_;
  bool is_announced_ = false;
  bool is_armed_ = false;  // a slice is due
  std::size_t steps_ = 0;
  const ResourceCache* unread_ = nullptr;             // the kind that is being read since load(); null: all are
  std::string last_read_;                             // the key of its last object that was read
  std::map<std::string, Owner, std::less<>> owners_;  // the Service of each address
  std::set<std::string> due_;                         // addresses to be compared with their object
  std::set<std::string> busy_;                        // addresses whose object is being written
  bool is_range_due_ = false;
  bool is_range_busy_ = false;
};

}  // namespace spillway::apiserver
