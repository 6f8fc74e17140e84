#include "netem/wire/relayed_pipe.hpp"

#include <utility>

namespace shoal::netem::wire {

void relayed_pipe::start(std::function<void(payload)> on_frame,
                         std::function<void(const std::string&)> on_closed) {
  std::lock_guard guard(mutex_);
  on_frame_ = std::move(on_frame);
  on_closed_ = std::move(on_closed);
}

void relayed_pipe::send(frame what) {
  if (closed_) return;
  std::lock_guard guard(protecting_);
  if (protection_) {
    auto protects = protection_->protect(what);
    if (!protects) return;
    what = std::move(*protects);
  }
  auto wrapped = to_bytes(head_);
  wrapped.insert(wrapped.end(), what.head.begin(), what.head.end());
  over_->send(head_.which == 1, {std::move(wrapped), std::move(what.behind)}, now_());
}

void relayed_pipe::finish() {
  if (closed_.exchange(true)) return;
  over_->send(head_.which == 1,
              frame_writer(frame_kind::relay_end).put(head_.other).put(head_.link).done(), now_());
  tell_closed("it was ended");
}

std::string relayed_pipe::certificate() const {
  std::lock_guard guard(protecting_);
  return protection_ ? protection_->certificate() : std::string{};
}

bool relayed_pipe::came(payload bytes) {
  if (protection_) {
    std::lock_guard guard(protecting_);
    auto opened = protection_->open(bytes);
    if (!opened) return false;
    bytes = std::move(*opened);
  }
  std::function<void(payload)> to;
  {
    std::lock_guard guard(mutex_);
    to = on_frame_;
  }
  if (to && !closed_) to(std::move(bytes));
  return true;
}

void relayed_pipe::tell_closed(const std::string& why) {
  std::function<void(const std::string&)> tell;
  {
    std::lock_guard guard(mutex_);
    tell = std::exchange(on_closed_, {});
    on_frame_ = {};
  }
  if (tell) tell(why);
}

std::shared_ptr<host_link> link_over(const std::shared_ptr<host_link>& relay, const node_key& own,
                                     const node_key& other, std::uint64_t token, bool dialled,
                                     const own_keys& keys, const std::function<duration()>& now) {
  auto out = std::make_shared<host_link>();
  out->token = token;
  out->relayed = other;
  out->relay = relay;
  for (std::uint8_t i = 0; i < 2; ++i) {
    auto protection =
        keys.key ? std::make_unique<end_to_end>(keys, relayed_ends{own, other, token, i, dialled})
                 : nullptr;
    out->pipes[i].through = std::make_shared<relayed_pipe>(relay, relayed_head{i, other, token},
                                                           now, std::move(protection));
  }
  return out;
}

} // namespace shoal::netem::wire
