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

void relayed_pipe::came(payload bytes) {
  std::function<void(payload)> to;
  {
    std::lock_guard guard(mutex_);
    to = on_frame_;
  }
  if (to && !closed_) to(std::move(bytes));
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

std::shared_ptr<host_link> link_over(const std::shared_ptr<host_link>& relay, const node_key& other,
                                     std::uint64_t token, const std::function<duration()>& now) {
  auto out = std::make_shared<host_link>();
  out->token = token;
  out->relayed = other;
  out->relay = relay;
  for (std::uint8_t i = 0; i < 2; ++i)
    out->pipes[i].through =
        std::make_shared<relayed_pipe>(relay, relayed_head{i, other, token}, now);
  return out;
}

} // namespace shoal::netem::wire
