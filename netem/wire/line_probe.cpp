#include "netem/wire/line_probe.hpp"

#include "netem/wire/end_reasons.hpp"
#include "netem/wire/listener.hpp"
#include "netem/wire/pipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace shoal::netem::wire {

namespace {

constexpr const char* probe_kind = "probe";
constexpr std::size_t piece_bytes = std::size_t{64} << 10;
/// The most bytes that one `want` frame may ask for.
constexpr std::uint64_t most_wanted = std::uint64_t{64} << 20;

// The kind of a frame, in its first byte.
enum class word : std::uint8_t { echo = 1, bulk, received, want };

using wall_clock = std::chrono::steady_clock;

frame frame_of(word what, std::uint64_t value, const payload& behind = {}) {
  frame out;
  out.head.resize(16);
  out.head[0] = static_cast<char>(what);
  std::memcpy(out.head.data() + 8, &value, sizeof(value));
  if (!behind.empty()) out.behind.push_back(behind);
  return out;
}

struct heard {
  word what{};
  std::uint64_t value = 0;
  std::size_t bulk = 0;
};
std::optional<heard> read(const payload& bytes) {
  if (bytes.size() < 16) return std::nullopt;
  heard out;
  out.what = static_cast<word>(std::to_integer<std::uint8_t>(bytes.bytes()[0]));
  std::memcpy(&out.value, bytes.bytes().data() + 8, sizeof(out.value));
  out.bulk = bytes.size() - 16;
  return out;
}

/// The bytes that may be in flight after `came` bytes have arrived. The window is small at first,
/// for slow lines, and grows fast enough for fast lines with long delays.
std::uint64_t on_its_way(std::uint64_t came) {
  return std::min<std::uint64_t>((256u << 10) + came / 4, 16u << 20);
}

/// The throughput once the line was full: the bytes that came after the first third of the time.
class meter {
public:
  void add(std::uint64_t so_far) { counts_.emplace_back(wall_clock::now(), so_far); }
  double bits_per_second() const {
    if (counts_.size() < 3) return 0;
    const auto begin = counts_.front().first, end = counts_.back().first;
    const auto from = std::find_if(counts_.begin(), counts_.end(), [&](const auto& c) {
      return c.first - begin >= (end - begin) / 3;
    });
    const auto seconds = std::chrono::duration<double>(end - from->first).count();
    return seconds > 0 ? 8 * static_cast<double>(counts_.back().second - from->second) / seconds
                       : 0;
  }

private:
  std::vector<std::pair<wall_clock::time_point, std::uint64_t>> counts_;
};

class answerer final : public line_answerer, public std::enable_shared_from_this<answerer> {
public:
  result<void> open(const address& at, std::shared_ptr<const tls_credentials> credentials,
                    std::shared_ptr<const admission> admits) {
    admits_ = std::move(admits);
    listener_options options;
    options.at = at;
    options.credentials = std::move(credentials);
    options.on_pipe =
        [weak = std::weak_ptr<answerer>(shared_from_this())](std::shared_ptr<pipe> made) {
          if (auto self = weak.lock()) self->answer(std::move(made));
        };
    auto made = listener::open(std::move(options));
    if (!made) return failure{made.error()};
    listener_ = std::move(*made);
    return {};
  }
  address at() const override { return listener_->at(); }
  void close() { listener_->close(); }

private:
  void answer(std::shared_ptr<pipe> made) {
    std::string detail;
    certified_member who;
    auto* const through = made.get();
    bool taken =
        made->kind() == probe_kind &&
        (!admits_ || admits_->check(made->certificate(), utc_now(), who, detail) == refusal::none);
    {
      std::lock_guard guard(mutex_);
      taken = taken && asking_.size() < most_at_once;
      if (taken) asking_.emplace(through, made);
    }
    made->start(
        [through, count = std::uint64_t{0},
         noise = payload{std::vector<std::byte>(piece_bytes)}](payload bytes) mutable {
          const auto what = read(bytes);
          if (!what) return through->close();
          switch (what->what) {
          case word::echo:
            return through->send(frame_of(word::echo, what->value));
          case word::bulk:
            count += what->bulk;
            return through->send(frame_of(word::received, count));
          case word::want:
            for (std::uint64_t sent = 0; sent < std::min(what->value, most_wanted);
                 sent += piece_bytes)
              through->send(frame_of(word::bulk, 0, noise));
            return;
          default:
            return through->close();
          }
        },
        [weak = weak_from_this(), through](const std::string&) {
          auto self = weak.lock();
          if (!self) return;
          std::lock_guard guard(self->mutex_);
          self->asking_.erase(through);
        });
    if (!taken) made->close();
  }

  std::shared_ptr<const admission> admits_;
  std::unique_ptr<listener> listener_;
  std::mutex mutex_; // guards asking_
  std::map<pipe*, std::shared_ptr<pipe>> asking_;
};

/// The handle of an answerer. Callbacks may still use the answerer after the handle is gone.
class owner final : public line_answerer {
public:
  explicit owner(std::shared_ptr<answerer> of) : of_(std::move(of)) {}
  ~owner() override { of_->close(); }
  address at() const override { return of_->at(); }

private:
  std::shared_ptr<answerer> of_;
};

} // namespace

result<std::unique_ptr<line_answerer>>
line_answerer::open(const address& at, std::shared_ptr<const tls_credentials> credentials,
                    std::shared_ptr<const admission> admits) {
  auto made = std::make_shared<answerer>();
  if (auto done = made->open(at, std::move(credentials), std::move(admits)); !done)
    return failure{done.error()};
  return std::unique_ptr<line_answerer>(new owner(std::move(made)));
}

result<line_facts> measure_line(const address& to,
                                const std::shared_ptr<const tls_credentials>& credentials,
                                const std::shared_ptr<const admission>& admits, duration time) {
  struct conversation {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t echoes = 0, received = 0, came = 0;
    std::optional<std::string> ended;
  };
  auto with = std::make_shared<conversation>();
  auto through = open_pipe(to.text(), probe_kind, credentials, {});
  through->start(
      [with](payload bytes) {
        const auto what = read(bytes);
        std::lock_guard guard(with->mutex);
        if (!what)
          with->ended = "its answer is malformed";
        else if (what->what == word::echo)
          ++with->echoes;
        else if (what->what == word::received)
          with->received = what->value;
        else if (what->what == word::bulk)
          with->came += what->bulk;
        with->changed.notify_all();
      },
      [with](const std::string& why) {
        std::lock_guard guard(with->mutex);
        with->ended = why == closed_by_other
                          ? "it does not answer measurements: run 'shoal probe --listen' there"
                          : why;
        with->changed.notify_all();
      });
  const auto fail = [&](const std::string& why) {
    through->close();
    return failure{fmt::format("{}: {}", to.text(), why)};
  };
  // Returns true once `done` is. Returns false if the stream ended or nothing came for ten seconds.
  std::unique_lock lock(with->mutex);
  const auto wait = [&](auto done) {
    return with->changed.wait_for(lock, std::chrono::seconds(10), [&] {
      return done() || with->ended;
    }) && !with->ended;
  };
  const auto lost = [&] { return fail(with->ended.value_or("no answer in 10 s")); };

  line_facts out;
  out.round_trip = duration::max();
  for (std::uint64_t i = 1; i <= 10; ++i) {
    const auto begun = wall_clock::now();
    through->send(frame_of(word::echo, i));
    if (!wait([&] { return with->echoes == i; })) return lost();
    if (i > 1)
      out.round_trip =
          std::min(out.round_trip, std::chrono::duration_cast<duration>(
                                       wall_clock::now() - begun)); // the first one connects
    if (i == 1 && admits) {
      std::string detail;
      certified_member who;
      const auto why = admits->check(through->certificate(), utc_now(), who, detail);
      out.name = who.name;
      if (why != refusal::none)
        return fail(fmt::format("is not one of the swarm: {}, {}", name_of(why), detail));
    }
  }
  // Up: keep as many bytes in flight as a link does; the other side acknowledges each piece.
  const payload noise{std::vector<std::byte>(piece_bytes)};
  const auto limit = std::chrono::duration_cast<wall_clock::duration>(time);
  meter up, down;
  std::uint64_t sent = 0;
  for (const auto begun = wall_clock::now(); wall_clock::now() - begun < limit;) {
    for (; sent < with->received + on_its_way(with->received); sent += piece_bytes)
      through->send(frame_of(word::bulk, 0, noise));
    const auto before = with->received;
    if (!wait([&] { return with->received > before; })) return lost();
    up.add(with->received);
  }
  if (!wait([&] { return with->received == sent; })) return lost();
  // Down: the other side keeps the same number of bytes in flight.
  std::uint64_t wanted = 0;
  for (const auto begun = wall_clock::now(); wall_clock::now() - begun < limit;) {
    for (; wanted < with->came + on_its_way(with->came); wanted += piece_bytes)
      through->send(frame_of(word::want, piece_bytes));
    const auto before = with->came;
    if (!wait([&] { return with->came > before; })) return lost();
    down.add(with->came);
  }
  lock.unlock();
  through->close();
  out.up = up.bits_per_second();
  out.down = down.bits_per_second();
  return out;
}

result<double> measure_copying(const std::shared_ptr<const tls_credentials>& credentials,
                               const std::shared_ptr<const admission>& admits, duration time) {
  const auto here = line_answerer::open({"127.0.0.1", 0}, credentials, admits);
  if (!here) return failure{here.error()};
  const auto line = measure_line((*here)->at(), credentials, admits, time / 2);
  if (!line) return failure{line.error()};
  return line->up + line->down; // twice their mean
}

} // namespace shoal::netem::wire
