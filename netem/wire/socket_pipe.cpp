#include "netem/wire/socket_pipe.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/text_fields.hpp"
#include "netem/wire/address.hpp"
#include "netem/wire/end_reasons.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

namespace shoal::netem::wire {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view names_no_kind = "it names no kind of pipe";
constexpr auto connect_time = 20s;
/// The time for the other side to read the rest, or to close its half, after finish().
constexpr auto linger_time = 5s;
constexpr auto room_retry = 20ms;
/// The longest first frame of a side that dials. Its owner has not said yet who may send more.
constexpr std::size_t longest_first_frame = std::size_t{64} << 10;
/// Threads that wait for name services.
constexpr int most_resolving = 64;
std::atomic<int> resolving{0};
/// A pipe reads and writes about so much before others on its loop have their turn.
constexpr std::size_t turn_bytes = std::size_t{2} << 20;
constexpr std::size_t most_parts = 64;

/// The bytes that a payload without content sends.
constexpr std::size_t zero_bytes = std::size_t{64} << 10;
std::byte zeros[zero_bytes];

} // namespace

std::string socket_text(const sockaddr* at, socklen_t length) {
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  if (getnameinfo(at, length, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  return address{host, number_of<std::uint16_t>(port).value_or(0)}.text();
}

bool byte_budget::take(std::size_t bytes) noexcept {
  if ((used_ += bytes) <= most_) return true;
  used_ -= bytes;
  return false;
}

std::shared_ptr<pipe> open_pipe(const std::string& address, const std::string& kind,
                                const std::shared_ptr<const tls_credentials>& credentials,
                                const pipe_options& options) {
  return socket_pipe::dial(address, kind, credentials, options);
}

std::shared_ptr<socket_pipe> socket_pipe::dial(const std::string& address, const std::string& kind,
                                               std::shared_ptr<const tls_credentials> credentials,
                                               const pipe_options& options) {
  SHOAL_CHECK(!kind.empty() && kind.size() <= longest_kind, "a kind is a short word");
  std::shared_ptr<socket_pipe> out(new socket_pipe(kind, options));
  out->target_ = out->peer_ = address;
  out->credentials_ = std::move(credentials);
  return out;
}

std::shared_ptr<socket_pipe> socket_pipe::accept(accepted what, const pipe_options& options) {
  std::shared_ptr<socket_pipe> made(new socket_pipe({}, options));
  made->peer_ = what.peer;
  made->stream_ = std::move(what.stream);
  made->from_ = std::move(what);
  made->frames_.limit_first(2, longest_first_frame); // the kind, and the owner's first
  made->loop_.post([made] {
    made->phase_ = phase::shaking;
    made->after(made->from_.timeout, &socket_pipe::end_if_not_open);
    made->ready();
  });
  return made;
}

socket_pipe::~socket_pipe() {
  if (from_.incomplete) from_.incomplete->give_back(reserved_);
  if (from_.gone) from_.gone();
}

std::string socket_pipe::certificate() const {
  std::lock_guard guard(mutex_);
  return certificate_;
}

std::string socket_pipe::peer() const {
  std::lock_guard guard(mutex_);
  return peer_;
}

// -- any thread -----------------------------------------------------------------------------------

void socket_pipe::start(std::function<void(payload)> on_frame,
                        std::function<void(const std::string&)> on_closed) {
  loop_.post([self = shared_from_this(), on_frame = std::move(on_frame),
              on_closed = std::move(on_closed)]() mutable {
    self->on_closed_ = std::move(on_closed);
    if (self->phase_ == phase::ended) return self->tell_end();
    self->on_frame_ = std::move(on_frame);
    if (self->phase_ == phase::idle) return self->begin();
    self->phase_ = phase::open;
    self->turn();
    self->resume();
  });
}

void socket_pipe::send(frame what) {
  SHOAL_CHECK(what.size() <= max_frame_bytes, "frames are cut into pieces before they are sent");
  {
    std::lock_guard guard(mutex_);
    if (closing_ || finishing_) return;
    queued_ += what.size();
    queue_.push_back(std::move(what));
    if (std::exchange(turn_posted_, true)) return;
  }
  loop_.post([self = shared_from_this()] { self->turn(); });
}

void socket_pipe::finish() {
  {
    std::lock_guard guard(mutex_);
    if (closing_ || std::exchange(finishing_, true)) return;
  }
  loop_.post([self = shared_from_this()] { self->turn(); });
}

void socket_pipe::close() {
  std::deque<frame> dropped; // destroyed without the lock
  {
    std::lock_guard guard(mutex_);
    if (std::exchange(closing_, true)) return;
    dropped.swap(queue_);
    queued_ = 0;
  }
  loop_.post([self = shared_from_this()] { self->turn(); });
}

void socket_pipe::remove(std::size_t bytes) {
  if ((unhandled_ -= bytes) > options_.window_bytes / 2) return;
  if (held_back_ && held_back_.exchange(false))
    loop_.post([self = shared_from_this()] { self->resume(); });
}

// -- the loop's thread ----------------------------------------------------------------------------

void socket_pipe::after(std::chrono::milliseconds time, void (socket_pipe::*then)()) {
  loop_.at(io_loop::clock::now() + time, [weak = weak_from_this(), then] {
    if (const auto self = weak.lock()) (self.get()->*then)();
  });
}

void socket_pipe::turn() {
  std::deque<frame> queued;
  bool closing = false, finishing = false;
  {
    std::lock_guard guard(mutex_);
    turn_posted_ = false;
    closing = closing_;
    finishing = finishing_;
    if (phase_ == phase::open) queued.swap(queue_);
  }
  if (phase_ == phase::ended) return;
  if (closing) return end("this side closed the connection");
  for (auto& each : queued) append(std::move(each));
  const bool lingers_now = finishing && !std::exchange(lingers_, true);
  if (lingers_now) after(linger_time, &socket_pipe::end_if_stuck);
  if (phase_ != phase::open) return;
  if (lingers_now) {
    frames_ = {};
    arrived_.clear();
    no_room_ = false;
    reserve();
  }
  if (!blocked_) write_some();
  if (lingers_now && phase_ == phase::open) {
    sent_before_ = stream_->sent();
    read_some();
  }
  watch();
}

void socket_pipe::append(frame what) {
  const auto size = what.size();
  const auto padding = padding_after(size);
  const auto prefix = frame_prefix(size);
  std::erase_if(what.behind, [](const payload& part) { return part.empty(); });
  std::vector<char> head;
  head.reserve(prefix.size() + what.head.size() + padding);
  head.assign(prefix.begin(), prefix.end());
  head.insert(head.end(), what.head.begin(), what.head.end());
  if (what.behind.empty()) head.resize(head.size() + padding);
  append_bytes(std::move(head));
  for (auto& part : what.behind) {
    if (part.is_size_only()) {
      append_zeros(part.size());
      continue;
    }
    const auto bytes = part.bytes();
    out_.push_back({{}, std::move(part), bytes.data(), bytes.size()});
  }
  if (!what.behind.empty()) append_zeros(padding);
  out_.back().frame_bytes = size;
}

void socket_pipe::append_bytes(std::vector<char> own) {
  const void* bytes = own.data();
  const auto size = own.size();
  out_.push_back({std::move(own), {}, bytes, size});
}

void socket_pipe::append_zeros(std::size_t count) {
  while (count > 0) {
    const auto size = std::min(zero_bytes, count);
    out_.push_back({{}, {}, zeros, size});
    count -= size;
  }
}

void socket_pipe::begin() {
  phase_ = phase::connecting;
  after(connect_time, &socket_pipe::end_if_not_open);
  const auto at = parse_address(target_);
  if (!at) return end(at.error());
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const auto port = std::to_string(at->port);
  if (getaddrinfo(at->host.c_str(), port.c_str(), &hints, &found) == 0) return resolved(0, found);
  // Name services may take seconds, and other pipes share this thread.
  hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
  if (++resolving > most_resolving) {
    --resolving;
    return end("too many names wait for a name service");
  }
  try {
    std::thread([self = shared_from_this(), host = at->host, port, hints] {
      addrinfo* all = nullptr;
      const int code = getaddrinfo(host.c_str(), port.c_str(), &hints, &all);
      --resolving;
      self->loop_.post([self, code, all] { self->resolved(code, all); });
    }).detach();
  } catch (const std::system_error&) {
    --resolving;
    end("this machine has no more threads");
  }
}

void socket_pipe::resolved(int code, addrinfo* found) {
  if (code == 0) found_.reset(found);
  if (phase_ != phase::connecting) return;
  if (code != 0) return end("no name service knows it");
  tried_ = found_.get();
  connect_to_next();
}

void socket_pipe::connect_to_next() {
  for (; tried_ != nullptr; tried_ = tried_->ai_next) {
    connecting_ = descriptor(
        ::socket(tried_->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
    if (connecting_.get() >= 0 &&
        (::connect(connecting_.get(), tried_->ai_addr, tried_->ai_addrlen) == 0 ||
         errno == EINPROGRESS))
      return watch();
    connect_error_ = socket_error_text(errno);
  }
  end(connect_error_);
}

void socket_pipe::connected() {
  int code = 0;
  socklen_t length = sizeof(code);
  getsockopt(connecting_.get(), SOL_SOCKET, SO_ERROR, &code, &length);
  if (code != 0) {
    connect_error_ = socket_error_text(code);
    loop_.forget(connecting_.get());
    tried_ = tried_->ai_next;
    return connect_to_next();
  }
  {
    std::lock_guard guard(mutex_);
    peer_ = socket_text(tried_->ai_addr, tried_->ai_addrlen);
  }
  found_.reset();
  const int yes = 1;
  setsockopt(connecting_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  stream_ = credentials_ ? credentials_->open(std::move(connecting_), tls_side::dials)
                         : std::make_unique<socket_stream>(std::move(connecting_));
  connecting_ = descriptor();
  phase_ = phase::shaking;
  shake_hands();
}

void socket_pipe::shake_hands() {
  switch (const auto state = stream_->handshake()) {
  case io_state::done:
    return shaken();
  case io_state::wants_read:
  case io_state::wants_write:
    shake_wants_ = state;
    return;
  default:
    end(stream_->why());
  }
}

void socket_pipe::shaken() {
  {
    std::lock_guard guard(mutex_);
    certificate_ = stream_->certificate();
  }
  append_bytes({protocol_magic.begin(), protocol_magic.end()});
  if (target_.empty()) {
    phase_ = phase::greeting;
    write_some();
  } else {
    append({{kind_.begin(), kind_.end()}, {}});
    out_.back().frame_bytes = 0; // nobody has queued it
    phase_ = phase::open;
    turn();
  }
  if (phase_ != phase::ended) read_some();
}

void socket_pipe::ready() {
  // The owner may let go in a callback.
  const auto self = shared_from_this();
  switch (phase_) {
  case phase::connecting:
    connected();
    break;
  case phase::shaking:
    shake_hands();
    break;
  case phase::greeting:
  case phase::open:
    if (blocked_) write_some();
    if (phase_ != phase::ended) read_some();
    break;
  default:
    break;
  }
  watch();
}

void socket_pipe::resume() {
  const auto self = shared_from_this();
  if (phase_ != phase::open) return;
  deliver();
  if (phase_ == phase::open) read_some();
  watch();
}

void socket_pipe::watch() {
  std::uint32_t events = 0;
  switch (phase_) {
  case phase::connecting:
    return connecting_.get() < 0 ? void()
                                 : loop_.watch(connecting_.get(), EPOLLOUT, shared_from_this());
  case phase::shaking:
    events = shake_wants_ == io_state::wants_read ? EPOLLIN : EPOLLOUT;
    break;
  case phase::greeting:
  case phase::open:
    events = (may_read() ? std::uint32_t{EPOLLIN} : 0) | (blocked_ ? std::uint32_t{EPOLLOUT} : 0);
    break;
  default:
    return;
  }
  loop_.watch(stream_->socket(), events, shared_from_this());
}

// -- writing ----

void socket_pipe::write_some() {
  blocked_ = false;
  for (std::size_t left = turn_bytes; !out_.empty();) {
    std::array<iovec, most_parts> parts;
    const auto count = std::min(out_.size(), parts.size());
    for (std::size_t i = 0; i < count; ++i)
      parts[i] = {const_cast<void*>(out_[i].bytes), out_[i].size};
    parts[0].iov_base = static_cast<char*>(parts[0].iov_base) + out_sent_;
    parts[0].iov_len -= out_sent_;
    const auto went = stream_->write({parts.data(), count});
    wrote(went.bytes);
    if (went.state == io_state::failed) return end(stream_->why());
    if (went.state == io_state::wants_write) {
      blocked_ = true;
      return;
    }
    if (went.bytes >= left) break;
    left -= went.bytes;
  }
  const auto state = stream_->flush();
  if (state == io_state::failed) return end(stream_->why());
  // Other pipes come first if more is left.
  blocked_ = state == io_state::wants_write || !out_.empty();
  if (blocked_ || finished_) return;
  {
    std::lock_guard guard(mutex_);
    if (!finishing_ || !queue_.empty() || phase_ != phase::open) return;
  }
  finished_ = true;
  stream_->end();
}

void socket_pipe::wrote(std::size_t bytes) {
  for (; bytes > 0 && bytes >= out_.front().size - out_sent_; out_.pop_front()) {
    bytes -= out_.front().size - std::exchange(out_sent_, 0);
    std::lock_guard guard(mutex_);
    if (!closing_) queued_ -= out_.front().frame_bytes;
  }
  out_sent_ += bytes;
}

// -- reading ----

/// Returns false while the magic bytes of the other side are not all there.
bool socket_pipe::read_magic() {
  while (magic_come_ < magic_.size()) {
    const iovec rest{magic_.data() + magic_come_, magic_.size() - magic_come_};
    const auto got = stream_->read({&rest, 1});
    if (got.state == io_state::wants_read) return false;
    if (got.state != io_state::done) {
      end(got.state == io_state::ended ? std::string(closed_by_other) : stream_->why());
      return false;
    }
    magic_come_ += got.bytes;
    if (!protocol_magic.starts_with({magic_.data(), magic_come_})) {
      decide(accepted::outcome::garbage);
      end("it does not speak Shoal's protocol");
      return false;
    }
  }
  return true;
}

/// Reads and drops what comes after finish(), until the other side has finished as well.
void socket_pipe::drain() {
  std::array<char, 16 << 10> dropped;
  const iovec room{dropped.data(), dropped.size()};
  for (std::size_t left = turn_bytes; left > 0;) {
    const auto got = stream_->read({&room, 1});
    if (got.state == io_state::wants_read || got.state == io_state::wants_write) return;
    if (got.state == io_state::ended) return end(std::string(closed_by_other));
    if (got.state == io_state::failed) return end(stream_->why());
    left -= std::min(left, got.bytes);
  }
  if (stream_->has_read_ahead()) loop_.post([self = shared_from_this()] { self->resume(); });
}

void socket_pipe::read_some() {
  if (lingers_ && phase_ == phase::open) return drain();
  for (std::size_t left = turn_bytes; may_read();) {
    if (!read_magic()) return;
    const auto room = frames_.room();
    const iovec parts[]{{room[0].data(), room[0].size()}, {room[1].data(), room[1].size()}};
    const auto got = stream_->read({parts, room[1].empty() ? 1u : 2u});
    if (got.state == io_state::wants_read || got.state == io_state::wants_write) return;
    if (got.state == io_state::ended) return end(std::string(closed_by_other));
    if (got.state == io_state::failed) return end(stream_->why());
    broken_ = !frames_.filled(got.bytes, arrived_);
    reserve();
    if (phase_ == phase::greeting) {
      if (!arrived_.empty()) return take_greeting();
      if (!broken_ && frames_.incomplete() == 0) continue;
      decide(accepted::outcome::garbage);
      return end(std::string(names_no_kind));
    }
    deliver();
    if (phase_ != phase::open) return;
    if (unhandled_ > options_.window_bytes) {
      held_back_ = true;
      // Checks again, since another thread may have handled the bytes between the two lines.
      if (unhandled_ > options_.window_bytes / 2 || !held_back_.exchange(false)) return;
    }
    const bool more = stream_->has_read_ahead();
    if (!more && got.bytes < room[0].size() + room[1].size()) return;
    if (got.bytes >= left) {
      // The socket says by itself that it has more.
      if (more) loop_.post([self = shared_from_this()] { self->resume(); });
      return;
    }
    left -= got.bytes;
  }
}

void socket_pipe::take_greeting() {
  const auto bytes = arrived_.front().bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool good =
      !text.empty() && text.size() <= longest_kind &&
      std::all_of(text.begin(), text.end(), [](char each) { return each >= 'a' && each <= 'z'; });
  if (!good) {
    decide(accepted::outcome::garbage);
    return end(std::string(names_no_kind));
  }
  kind_ = text;
  arrived_.erase(arrived_.begin());
  // From here on the pipe is its owner's alone. Without an owner it closes.
  const auto self = shared_from_this();
  phase_ = phase::waiting;
  loop_.forget(stream_->socket());
  decide(accepted::outcome::greeted);
}

void socket_pipe::decide(accepted::outcome what) {
  if (const auto decided = std::exchange(from_.decided, {})) decided(what, shared_from_this());
}

void socket_pipe::deliver() {
  // An exception in a callback must not end the loop.
  try {
    for (auto& each : arrived_) on_frame_(std::move(each));
  } catch (...) {
    return end("this host could not handle what it sent");
  }
  arrived_.clear();
  if (!broken_) return;
  malformed_ = true;
  end("it sent bytes that are no frames");
}

void socket_pipe::reserve() {
  const auto needed = frames_.incomplete();
  if (!from_.incomplete || needed == reserved_) return;
  from_.incomplete->give_back(std::exchange(reserved_, 0));
  find_room();
}

void socket_pipe::find_room() {
  const auto needed = phase_ == phase::ended ? 0 : frames_.incomplete();
  const bool waited = no_room_.exchange(false);
  if (needed > 0 && !from_.incomplete->take(needed)) {
    no_room_ = true;
    return after(room_retry, &socket_pipe::find_room);
  }
  reserved_ = needed;
  if (waited) resume();
}

// -- ends ----

void socket_pipe::end_if_not_open() {
  if (phase_ == phase::connecting || phase_ == phase::shaking || phase_ == phase::greeting)
    end(std::string(does_not_answer));
}

void socket_pipe::end_if_stuck() {
  if (phase_ == phase::ended) return;
  const auto sent = stream_ ? stream_->sent() : 0;
  if (sent == std::exchange(sent_before_, sent)) return end(std::string(does_not_answer));
  after(linger_time, &socket_pipe::end_if_stuck);
}

void socket_pipe::end(std::string why) {
  if (phase_ == phase::ended) return;
  const auto self = shared_from_this();
  decide(accepted::outcome::failed);
  if (stream_) loop_.forget(stream_->socket());
  if (connecting_.get() >= 0) loop_.forget(connecting_.get());
  phase_ = phase::ended;
  stream_ = nullptr;
  connecting_ = descriptor();
  out_.clear();
  out_sent_ = 0;
  arrived_.clear();
  if (from_.incomplete) from_.incomplete->give_back(std::exchange(reserved_, 0));
  ended_because_ = std::move(why);
  held_back_ = no_room_ = false;
  std::deque<frame> dropped; // destroyed without the lock
  {
    std::lock_guard guard(mutex_);
    closing_ = true;
    dropped.swap(queue_);
    queued_ = 0;
  }
  tell_end();
  if (const auto gone = std::exchange(from_.gone, {})) gone();
}

void socket_pipe::tell_end() {
  // The callbacks own objects, which go with them.
  const auto tell = std::exchange(on_closed_, {});
  on_frame_ = {};
  try {
    if (tell) tell(ended_because_);
  } catch (...) {
    // The connection has ended, so there is nothing to close.
  }
}

} // namespace shoal::netem::wire
