#include "netem/wire/grpc_pipe.hpp"

#include "kernels/base/check.hpp"
#include "netem/wire/frames.hpp"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <vector>

namespace shoal::netem::wire {

namespace {

// Frames up to this total size travel in one gRPC message.
constexpr std::size_t together_bytes = std::size_t{64} << 10;

grpc::Slice slice_of(const payload& part) {
  if (part.is_size_only()) return grpc::Slice{std::string(part.size(), '\0')};
  auto* keeps = new payload(part);
  return {const_cast<std::byte*>(part.bytes().data()), part.size(),
          [](void* owner) { delete static_cast<payload*>(owner); }, keeps};
}

} // namespace

grpc::ByteBuffer to_grpc(std::deque<frame>& from, std::size_t& bytes) {
  std::vector<grpc::Slice> slices;
  std::string head;
  bytes = 0;
  auto flush = [&] {
    if (!head.empty()) slices.emplace_back(std::exchange(head, {}));
  };
  do {
    auto what = std::move(from.front());
    from.pop_front();
    const std::size_t size = what.size();
    std::array<char, frame_prefix_bytes> prefix{};
    const auto length = static_cast<std::uint32_t>(size);
    std::memcpy(prefix.data(), &length, sizeof(length));
    head.append(prefix.data(), prefix.size());
    head.append(what.head.data(), what.head.size());
    for (const auto& part : what.behind) {
      if (part.empty()) continue;
      flush();
      slices.push_back(slice_of(part));
    }
    head.append(padding_after(size), '\0');
    bytes += size;
  } while (!from.empty() && bytes + from.front().size() <= together_bytes);
  flush();
  return {slices.data(), slices.size()};
}

bool from_grpc(const grpc::ByteBuffer& message, std::vector<payload>& into) {
  auto whole = std::make_shared<grpc::Slice>();
  if (!message.TrySingleSlice(whole.get()).ok() && !message.DumpToSingleSlice(whole.get()).ok())
    return false;
  const auto bytes = std::as_bytes(std::span(whole->begin(), whole->size()));
  return split_frames(std::move(whole), bytes, into);
}

std::string certificate_of(const std::shared_ptr<const grpc::AuthContext>& context) {
  if (!context) return {};
  const auto found = context->FindPropertyValues("x509_pem_cert");
  return found.empty() ? std::string{} : std::string(found.front().data(), found.front().size());
}

// -- both ends ------------------------------------------------------------------------------------

void grpc_pipe::go(std::function<void(payload)> on_frame,
                   std::function<void(const std::string&)> on_closed) {
  std::unique_lock lock(mutex_);
  on_frame_ = std::move(on_frame);
  on_closed_ = std::move(on_closed);
  started_ = reading_ = true;
  lock.unlock();
  start_read(&in_);
  lock.lock();
  if (!writing_) write_next(lock);
}

/// Writes the next frames. Requires: no write is pending. Releases the lock.
void grpc_pipe::write_next(std::unique_lock<std::mutex>& lock) {
  if (!started_ || closing_) return idle_if_so(lock);
  if (queue_.empty()) {
    if (!finishing_ || std::exchange(finished_, true)) return idle_if_so(lock);
    lock.unlock();
    return start_finish();
  }
  writing_ = true;
  std::size_t bytes = 0;
  out_ = to_grpc(queue_, bytes);
  queued_ -= bytes;
  lock.unlock();
  start_write(&out_);
}

void grpc_pipe::idle_if_so(std::unique_lock<std::mutex>& lock) {
  const bool now =
      started_ && closing_ && !reading_ && !writing_ && !std::exchange(idle_told_, true);
  lock.unlock();
  if (now) idle();
}

void grpc_pipe::send(frame what) {
  SHOAL_CHECK(what.size() <= max_frame_bytes, "frames are cut into pieces before they are sent");
  std::unique_lock lock(mutex_);
  if (closing_ || finishing_) return;
  queued_ += what.size();
  queue_.push_back(std::move(what));
  if (!writing_ && started_) write_next(lock);
}

void grpc_pipe::finish() {
  std::unique_lock lock(mutex_);
  if (closing_ || std::exchange(finishing_, true)) return;
  if (!writing_) write_next(lock);
}

void grpc_pipe::close() {
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(closing_, true)) return;
    queue_.clear();
    queued_ = 0;
    end_hold_back();
  }
  cancel();
  std::unique_lock lock(mutex_);
  idle_if_so(lock);
}

void grpc_pipe::remove(std::size_t bytes) {
  if ((unhandled_ -= bytes) > options_.window_bytes / 2) return;
  if (!held_back_) return;
  std::unique_lock lock(mutex_);
  if (!held_back_.exchange(false) || closing_) return;
  lock.unlock();
  start_read(&in_);
}

void grpc_pipe::read_done(bool ok) {
  in_callback(this);
  std::vector<payload> frames;
  if (ok && !from_grpc(in_, frames)) {
    ok = false;
    malformed_ = true;
    frames.clear();
  }
  in_.Clear();
  // An exception in a callback of gRPC would leave the stream without a reader for good.
  try {
    for (auto& each : frames) on_frame_(std::move(each));
  } catch (...) {
    ok = false;
  }
  frames.clear();
  std::unique_lock lock(mutex_);
  if (!ok || closing_) {
    closing_ = true;
    reading_ = false;
    queue_.clear();
    queued_ = 0;
    lock.unlock();
    cancel();
    lock.lock();
    return idle_if_so(lock);
  }
  if (unhandled_ > options_.window_bytes) {
    held_back_ = true;
    // Checks again, since another thread may have handled the bytes between the two lines.
    if (unhandled_ > options_.window_bytes / 2 || !held_back_.exchange(false)) return;
  }
  lock.unlock();
  start_read(&in_);
}

void grpc_pipe::write_done(bool ok) {
  in_callback(this);
  std::unique_lock lock(mutex_);
  writing_ = false;
  if (!ok) {
    closing_ = true;
    end_hold_back();
  }
  write_next(lock);
}

void grpc_pipe::ended(const std::string& why) {
  in_callback(this);
  std::function<void(const std::string&)> tell;
  // The callbacks own objects whose destructors must not run under the lock.
  std::function<void(payload)> none_come;
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    queue_.clear();
    queued_ = 0;
    tell = std::exchange(on_closed_, {});
    none_come = std::exchange(on_frame_, {});
  }
  try {
    if (tell) tell(why);
  } catch (...) {
    // The stream has ended, so there is nothing to close.
  }
}

// -- the end that dials ---------------------------------------------------------------------------

namespace {

using stub = grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>;

/// A call that is never started, on a channel that never connects. It keeps gRPC's callback thread
/// alive. gRPC ends that thread with the last channel that has calls, and starts another one for
/// the next call. Two such threads at the same time abort the process (1.51). The thread itself
/// cannot close a channel.
void keep_callback_thread() {
  struct keeper final : grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
    stub calls{grpc::CreateChannel("localhost:1", grpc::InsecureChannelCredentials())};
    grpc::ClientContext context;
    keeper() { calls.PrepareBidiStreamingCall(&context, "/shoal/keeper", {}, this); }
  };
  // The object lives as long as the process. Without volatile, the compiler drops the only pointer
  // to it, and leak checkers report a leak.
  [[maybe_unused]] static const keeper* volatile kept = new keeper;
}

/// Channels whose stream has ended while they connect. gRPC (1.51) never closes a connection that
/// is made when its channel has gone: its descriptor and about 100 KiB stay for good. A host that
/// refuses all who dial it could use up their descriptors. So a channel lives until its attempt to
/// connect is over, and goes when the next stream begins or ends. Thread safety: all.
class connecting_channels {
public:
  /// Channels as they are in this process.
  static connecting_channels& instance() {
    static auto* const all = new connecting_channels; // gRPC may use it until the process ends
    return *all;
  }
  void add(std::shared_ptr<grpc::Channel> channel) {
    drop_settled();
    if (!connects(*channel)) return;
    std::lock_guard guard(mutex_);
    all_.push_back(std::move(channel));
  }
  void drop_settled() {
    std::vector<std::shared_ptr<grpc::Channel>> settled; // destroyed without the lock
    std::lock_guard guard(mutex_);
    const auto rest = std::stable_partition(all_.begin(), all_.end(),
                                            [](const auto& each) { return connects(*each); });
    settled.assign(std::make_move_iterator(rest), std::make_move_iterator(all_.end()));
    all_.erase(rest, all_.end());
  }

private:
  static bool connects(grpc::Channel& channel) {
    return channel.GetState(false) == GRPC_CHANNEL_CONNECTING;
  }
  std::mutex mutex_; // guards the member below
  std::vector<std::shared_ptr<grpc::Channel>> all_;
};

/// Names a host and port to gRPC. Without the scheme, gRPC would take 'unix:1' for a file.
std::string target_of(const std::string& address) {
  std::string out = "dns:///";
  for (const char each : address) each == '%' ? out += "%25" : out += each;
  return out;
}

class client_pipe final : public grpc_pipe,
                          public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
public:
  client_pipe(const std::string& address, const std::string& kind,
              const std::shared_ptr<grpc::ChannelCredentials>& credentials,
              const pipe_options& options)
      : grpc_pipe(kind, options) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(static_cast<int>(max_grpc_bytes));
    arguments.SetMaxSendMessageSize(-1);
    // Connections are not shared: bulk and control have one each, and after a cut no pipe waits for
    // an old connection's retransmission.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                     static_cast<int>(options.lookahead_bytes));
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
    arguments.SetInt(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 1 << 20);
    channel_ = grpc::CreateCustomChannel(target_of(address), credentials, arguments);
    stub_ = std::make_unique<stub>(channel_);
  }
  ~client_pipe() override { connecting_channels::instance().add(std::move(channel_)); }

  void start(std::function<void(payload)> on_frame,
             std::function<void(const std::string&)> on_closed) override {
    self_ = std::static_pointer_cast<client_pipe>(keep_.lock());
    stub_->PrepareBidiStreamingCall(&context_, "/shoal/" + kind(), {}, this);
    AddHold(); // any thread may send frames
    StartCall();
    go(std::move(on_frame), std::move(on_closed));
  }
  void keep(const std::shared_ptr<client_pipe>& self) { keep_ = self; }

  std::string certificate() const override { return certificate_of(context_.auth_context()); }
  std::string peer() const override { return context_.peer(); }

private:
  void start_read(grpc::ByteBuffer* into) override { grpc_goes_on(), StartRead(into); }
  void start_write(const grpc::ByteBuffer* what) override { grpc_goes_on(), StartWrite(what); }
  void start_finish() override { grpc_goes_on(), StartWritesDone(); }
  void cancel() override { grpc_goes_on(), context_.TryCancel(); }
  void idle() override { grpc_goes_on(), RemoveHold(); }

  void OnReadDone(bool ok) override { read_done(ok), grpc_goes_on(); }
  void OnWriteDone(bool ok) override { write_done(ok), grpc_goes_on(); }
  void OnDone(const grpc::Status& status) override {
    ended(status.error_message());
    auto self = std::move(self_);
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<stub> stub_;
  grpc::ClientContext context_;
  std::weak_ptr<client_pipe> keep_;
  std::shared_ptr<client_pipe> self_; // until the stream ends
};

} // namespace

std::shared_ptr<pipe> open_pipe(const std::string& address, const std::string& kind,
                                const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                                const pipe_options& options) {
  keep_callback_thread();
  connecting_channels::instance().drop_settled();
  auto out = std::make_shared<client_pipe>(address, kind, credentials, options);
  out->keep(out);
  return out;
}

} // namespace shoal::netem::wire
