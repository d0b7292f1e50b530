// A value whose copies share it until one of them is changed. Copying costs a count, not the content.
// The reference that write() returns must not be used once the holder has been copied: both copies would change.
// Thread: any; copies of one value may be used by different threads at the same time, as copies of plain values may.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace spillway {

template <typename T>
class CopyOnWrite {
 public:
  /// T(), without an allocation.
  CopyOnWrite() = default;

  explicit CopyOnWrite(T value) : node_(new Node(std::move(value))) {}  // NOLINT(cppcoreguidelines-owning-memory)

  /// Not noexcept: a variant must copy before it destroys its value, because the source may be inside that value.
  CopyOnWrite(const CopyOnWrite& other) : node_(other.node_) {
    if (node_ != nullptr) node_->holders.fetch_add(1, std::memory_order_relaxed);
  }

  CopyOnWrite(CopyOnWrite&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}

  CopyOnWrite& operator=(CopyOnWrite other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }

  ~CopyOnWrite() { release(); }

  const T& read() const {
    static const T empty{};
    return node_ != nullptr ? node_->value : empty;
  }

  /// The value for changes: it is copied first if other holders share it.
  T& write() {
    if (node_ == nullptr) {
      node_ = new Node(T());  // NOLINT(cppcoreguidelines-owning-memory)
    } else if (!is_sole()) {
      Node* own = new Node(node_->value);  // NOLINT(cppcoreguidelines-owning-memory)
      release();
      node_ = own;
    }
    return node_->value;
  }

  /// True if both hold the very same value: equal without a comparison.
  bool shares(const CopyOnWrite& other) const { return node_ == other.node_; }

  friend bool operator==(const CopyOnWrite& a, const CopyOnWrite& b) { return a.shares(b) || a.read() == b.read(); }

 private:
  struct Node {
    explicit Node(T content) : value(std::move(content)) {}

    std::atomic<std::uint32_t> holders{1};
    T value;
  };

  /// Acquire: sees the writes that another holder made before it released the value.
  bool is_sole() const { return node_->holders.load(std::memory_order_acquire) == 1; }

  void release() {
    if (node_ == nullptr) return;
    if (is_sole() || node_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete node_;  // NOLINT(cppcoreguidelines-owning-memory)
    }
  }

  Node* node_ = nullptr;
};

}  // namespace spillway
