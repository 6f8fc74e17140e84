#include "netem/wire/striped_pipe.hpp"

#include "netem/wire/control_requests.hpp"

#include <algorithm>
#include <cstring>

namespace shoal::netem::wire {

namespace {

/// In front of each frame: its number.
constexpr std::size_t number_bytes = sizeof(std::uint64_t);
/// The memory that an early frame needs beside its bytes, about.
constexpr std::size_t early_overhead = 128;

} // namespace

frame to_frame(const stripe_greeting& what) {
  return frame_writer(frame_kind::stripe).put(what.token).put(what.which).put(what.count).done();
}

std::optional<stripe_greeting> read_stripe_greeting(std::span<const std::byte> bytes) {
  frame_reader in(bytes);
  const auto kind = static_cast<frame_kind>(in.get<std::uint8_t>());
  stripe_greeting out;
  out.token = in.get<std::uint64_t>();
  out.which = in.get<std::uint8_t>();
  out.count = in.get<std::uint8_t>();
  if (!in.finished() || kind != frame_kind::stripe || out.count < 2 || out.count > most_stripes ||
      out.which >= out.count)
    return {};
  return out;
}

// -- one pipe -------------------------------------------------------------------------------------

striped_pipe::striped_pipe(std::string kind, std::size_t count)
    : kind_(std::move(kind)), stripes_(count) {}

std::shared_ptr<striped_pipe> striped_pipe::over(std::string kind, std::uint64_t token,
                                                 std::vector<std::shared_ptr<pipe>> stripes) {
  auto out = std::make_shared<striped_pipe>(std::move(kind), stripes.size());
  out->stripes_ = std::move(stripes);
  out->greets_ = token;
  return out;
}

std::vector<std::shared_ptr<pipe>> striped_pipe::stripes() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<pipe>> out;
  for (const auto& each : stripes_)
    if (each) out.push_back(each);
  return out;
}

bool striped_pipe::add(std::size_t which, std::shared_ptr<pipe> stripe) {
  std::lock_guard lock(mutex_);
  if (stripes_[which]) return false;
  stripes_[which] = std::move(stripe);
  return true;
}

bool striped_pipe::is_complete() const {
  std::lock_guard lock(mutex_);
  return std::all_of(stripes_.begin(), stripes_.end(), [](const auto& each) { return !!each; });
}

void striped_pipe::start(std::function<void(payload)> on_frame,
                         std::function<void(const std::string&)> on_closed) {
  std::unique_lock lock(mutex_);
  on_frame_ = std::move(on_frame);
  on_closed_ = std::move(on_closed);
  started_ = true;
  if (!greets_) return hand_on(lock);
  lock.unlock();
  for (std::size_t i = 0; i < stripes_.size(); ++i) {
    stripes_[i]->send(to_frame(stripe_greeting{*greets_, static_cast<std::uint8_t>(i),
                                               static_cast<std::uint8_t>(stripes_.size())}));
    stripes_[i]->start(
        [self = shared_from_this(), i](payload bytes) { self->came(i, bytes); },
        [self = shared_from_this()](const std::string& why) { self->stripe_closed(why); });
  }
}

void striped_pipe::came(std::size_t which, const payload& bytes) {
  std::uint64_t number = 0;
  bool good = bytes.size() > number_bytes;
  if (good) std::memcpy(&number, bytes.bytes().data(), number_bytes);
  std::unique_lock lock(mutex_);
  // A stripe that runs ahead waits. All stripes together may hold as much as one of them.
  const auto charged = (bytes.size() + early_overhead) * stripes_.size();
  good =
      good && number >= next_ &&
      early_
          .try_emplace(number, early_frame{bytes.slice(number_bytes, bytes.size() - number_bytes),
                                           which, charged})
          .second;
  if (!good) {
    malformed_ = true;
    lock.unlock();
    return close();
  }
  stripes_[which]->window().add(charged);
  hand_on(lock);
}

/// Hands on the frames whose turn has come, one thread at a time. Releases the lock.
void striped_pipe::hand_on(std::unique_lock<std::mutex>& lock) {
  if (!started_ || handing_on_) return lock.unlock();
  handing_on_ = true;
  while (!early_.empty() && early_.begin()->first == next_) {
    auto due = early_.extract(early_.begin());
    ++next_;
    auto& what = due.mapped();
    lock.unlock();
    try {
      on_frame_(std::move(what.bytes));
    } catch (...) {
      close();
    }
    stripes_[what.which]->window().remove(what.charged);
    lock.lock();
  }
  handing_on_ = false;
  if (closed_ < stripes_.size()) return lock.unlock();
  const auto tell = std::exchange(on_closed_, {});
  const auto none_come = std::exchange(on_frame_, {});
  early_.clear();
  lock.unlock();
  if (tell) tell(why_);
}

void striped_pipe::stripe_closed(const std::string& why) {
  std::unique_lock lock(mutex_);
  const bool first = ++closed_ == 1;
  if (first) why_ = why;
  hand_on(lock);
  if (first) finish();
}

void striped_pipe::send(frame what) {
  std::lock_guard lock(sending_);
  std::size_t to = 0, least = SIZE_MAX;
  for (std::size_t i = 1; i <= stripes_.size(); ++i) {
    const auto which = (latest_ + i) % stripes_.size();
    const auto queued = stripes_[which]->queued_bytes();
    if (queued < least) {
      least = queued;
      to = which;
    }
  }
  latest_ = to;
  const auto number = sent_++;
  const auto* bytes = reinterpret_cast<const char*>(&number);
  what.head.insert(what.head.begin(), bytes, bytes + number_bytes);
  stripes_[to]->send(std::move(what));
}

void striped_pipe::finish() {
  for (const auto& each : stripes()) each->finish();
}

void striped_pipe::close() {
  for (const auto& each : stripes()) each->close();
}

std::size_t striped_pipe::queued_bytes() const {
  std::size_t out = 0;
  for (const auto& each : stripes_) out += each->queued_bytes();
  return out;
}

void striped_pipe::add(std::size_t bytes) {
  for (const auto& each : stripes_) each->window().add(bytes);
}

void striped_pipe::remove(std::size_t bytes) {
  for (const auto& each : stripes_) each->window().remove(bytes);
}

bool striped_pipe::malformed() const {
  {
    std::lock_guard lock(mutex_);
    if (malformed_) return true;
  }
  return std::any_of(stripes_.begin(), stripes_.end(),
                     [](const auto& each) { return each->malformed(); });
}

bool striped_pipe::held_back() const {
  return std::any_of(stripes_.begin(), stripes_.end(),
                     [](const auto& each) { return each->held_back(); });
}

// -- pipes that come stripe by stripe -------------------------------------------------------------

void stripe_sets::incoming(std::shared_ptr<pipe> stripe, duration now) {
  const auto certificate = stripe->certificate();
  bool room = false;
  {
    std::lock_guard lock(mutex_);
    const auto of_one = std::count_if(waiting_.begin(), waiting_.end(), [&](const auto& entry) {
      return entry.second.certificate == certificate;
    });
    const auto most = certificate.empty() ? most_waiting : most_waiting_of_one;
    room = !stopped_ && waiting_.size() < most_waiting && static_cast<std::size_t>(of_one) < most;
    if (room) waiting_.emplace(stripe.get(), waiting_stripe{stripe, certificate, now, nullptr});
  }
  if (!room) return reject(stripe);
  struct place {
    std::shared_ptr<striped_pipe> in;
    std::size_t which = 0;
  };
  const auto at = std::make_shared<place>(); // only the stripe's callbacks use it, one at a time
  stripe->start(
      [self = shared_from_this(), at, of = stripe.get()](const payload& bytes) {
        if (at->in)
          at->in->came(at->which, bytes);
        else
          at->in = self->greeted(of, bytes, at->which);
      },
      [self = shared_from_this(), at, of = stripe.get()](const std::string& why) {
        self->stripe_closed(of);
        if (at->in) at->in->stripe_closed(why);
      });
}

std::shared_ptr<striped_pipe> stripe_sets::greeted(const pipe* stripe, const payload& bytes,
                                                   std::size_t& which) {
  const auto greeting = read_stripe_greeting(bytes.bytes());
  std::shared_ptr<striped_pipe> in;
  std::shared_ptr<pipe> wrong;
  bool whole = false;
  {
    std::lock_guard lock(mutex_);
    const auto found = waiting_.find(stripe);
    if (found == waiting_.end()) return nullptr; // closed meanwhile
    auto& [through, certificate, since, part_of] = found->second;
    bool good = greeting.has_value();
    if (good) {
      const set_key key{certificate, greeting->token};
      const auto set = sets_.try_emplace(key, waiting_set{greeting->count, nullptr}).first;
      if (!set->second.pipe)
        set->second.pipe = std::make_shared<striped_pipe>(kind_, greeting->count);
      in = set->second.pipe;
      good = set->second.count == greeting->count && in->add(greeting->which, through);
      which = greeting->which;
      part_of = in;
      whole = good && in->is_complete();
      if (whole) {
        sets_.erase(set);
        std::erase_if(waiting_, [&](const auto& entry) { return entry.second.in == in; });
      }
    }
    if (!good) wrong = through;
  }
  if (wrong) {
    wrong->close();
    return nullptr;
  }
  if (whole) complete_(in);
  return in;
}

/// A pipe that loses a stripe before the last one has come stays incomplete.
void stripe_sets::stripe_closed(const pipe* stripe) {
  std::shared_ptr<striped_pipe> in;
  {
    std::lock_guard lock(mutex_);
    const auto found = waiting_.find(stripe);
    if (found == waiting_.end()) return;
    in = found->second.in;
    waiting_.erase(found);
    if (!in) return;
    std::erase_if(sets_, [&](const auto& entry) { return entry.second.pipe == in; });
  }
  in->close();
}

void stripe_sets::close_overdue(duration now, duration limit) {
  std::vector<std::shared_ptr<pipe>> late;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, each] : waiting_)
      if (now - each.since > limit) late.push_back(each.stripe);
  }
  for (const auto& each : late) each->close();
}

void stripe_sets::close() {
  std::vector<std::shared_ptr<pipe>> open;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    for (const auto& [key, each] : waiting_) open.push_back(each.stripe);
  }
  for (const auto& each : open) each->close();
}

} // namespace shoal::netem::wire
