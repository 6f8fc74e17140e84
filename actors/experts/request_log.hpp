// The requests that a server has computed, and their answers, so that a repeated backward pass
// makes one optimizer step. A plain state machine with a bound on its memory.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/payload.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

namespace shoal::actors {

class request_log {
public:
  /// The client's host, and the number that it gave the request.
  using key = std::pair<peer_id, std::uint64_t>;

  explicit request_log(std::size_t most = 4096, std::size_t most_bytes = 64U << 20)
      : most_(most), most_bytes_(most_bytes) {}

  enum class seen : std::uint8_t {
    no,       ///< the request is new, and now under way
    underway, ///< the request has no answer yet
    answered, ///< answer() has it
  };
  seen begin(const key& which);
  /// The answer of a request that begin() calls answered.
  const payload& answer(const key& which) const { return requests_.at(which).answer; }
  /// Keeps an answer. The oldest ones make room for it.
  void done(const key& which, payload answer);
  /// The request was not computed after all, so that it may come again.
  void refused(const key& which) { requests_.erase(which); }

  std::size_t size() const noexcept { return requests_.size(); }
  std::size_t bytes() const noexcept { return bytes_; }

private:
  struct request {
    payload answer;
    bool is_done = false;
  };
  std::size_t most_, most_bytes_, bytes_ = 0;
  std::map<key, request> requests_;
  std::deque<key> order_; // requests that are done, the oldest first
};

} // namespace shoal::actors
