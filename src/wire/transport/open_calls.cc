#include "wire/transport/open_calls.h"

#include <utility>

namespace spillway::wire {

OpenCalls::EntryPtr OpenCalls::add(Receiver& receiver, client::CallId id) {
  auto entry = std::make_shared<Entry>();
  entry->receiver = &receiver;
  entry->id = id;
  open_[{&receiver, id}] = entry;
  return entry;
}

OpenCalls::EntryPtr OpenCalls::remove(Receiver& receiver, client::CallId id) {
  const auto it = open_.find({&receiver, id});
  if (it == open_.end()) return nullptr;
  EntryPtr entry = std::move(it->second);
  open_.erase(it);
  entry->receiver = nullptr;
  return entry;
}

std::vector<OpenCalls::EntryPtr> OpenCalls::remove_all(Receiver& receiver) {
  std::vector<EntryPtr> removed;
  for (auto it = open_.lower_bound({&receiver, 0}); it != open_.end() && it->first.first == &receiver;) {
    it->second->receiver = nullptr;
    removed.push_back(std::move(it->second));
    it = open_.erase(it);
  }
  return removed;
}

std::vector<OpenCalls::EntryPtr> OpenCalls::remove_all() {
  std::vector<EntryPtr> removed;
  for (auto& [key, entry] : open_) {
    entry->receiver = nullptr;
    removed.push_back(std::move(entry));
  }
  open_.clear();
  return removed;
}

void OpenCalls::post_frame(const EntryPtr& entry, std::shared_ptr<const std::string> frame,
                           std::move_only_function<void()> delivered, api::WatchDocumentPtr event, std::size_t bytes) {
  if (bytes == 0) bytes = frame->size();
  entry->queued_bytes += bytes;
  loop_.post(
      [entry, frame = std::move(frame), event = std::move(event), delivered = std::move(delivered), bytes]() mutable {
        entry->queued_bytes -= bytes;
        if (delivered) delivered();
        if (entry->receiver != nullptr)
          entry->receiver->on_api_event(client::WatchFrame{entry->id, std::move(frame), std::move(event)});
      });
}

void OpenCalls::post_last(const EntryPtr& entry, client::ApiEvent event) {
  loop_.post([calls = weak_from_this(), entry, event = std::move(event)]() mutable {
    Receiver* const receiver = entry->receiver;
    if (receiver == nullptr) return;
    if (const auto alive = calls.lock()) alive->remove(*receiver, entry->id);
    receiver->on_api_event(std::move(event));
  });
}

}  // namespace spillway::wire
