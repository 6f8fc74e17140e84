// Passes through a swarm for a caller that is no actor and waits for each answer. It talks to a
// pass_client by functions that its owner gives it.
#pragma once

#include "actors/inference/messages.hpp"
#include "kernels/learn/remote_layers.hpp"

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace shoal::actors {

/// Thread safety: answer() and close() may be called from other threads.
class blocking_passes final : public learn::remote_layers {
public:
  struct options {
    std::int64_t layers = 0;
    std::size_t width = 0;
    std::string adapter{}; ///< name of a LoRA at the servers; empty: none
    /// Send to the pass_client. The owner sets `reply_to` to an actor that calls answer().
    std::function<void(layers_forward)> forward{};
    std::function<void(layers_backward)> backward{};
    /// Lets virtual time go on until the answer may be here. Empty on the wall clock.
    std::function<void()> wait{};
  };

  explicit blocking_passes(options how) : how_(std::move(how)) {}

  std::int64_t layers() const noexcept override { return how_.layers; }
  std::size_t width() const noexcept override { return how_.width; }
  result<passed> forward(learn::layer_range layers, learn::pass_shape shape,
                         std::span<const float> activations,
                         std::span<const float> prompts) override;
  result<gradients> backward(std::uint64_t pass, std::span<const float> gradient) override;
  void forget(std::uint64_t pass) override;

  void answer(const layers_done& m);
  /// All waiting and later calls fail with this reason.
  void close(const std::string& why);

private:
  result<layers_done> wait_for(std::uint64_t pass);
  std::optional<std::string> closed();

  const options how_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::map<std::uint64_t, layers_done> answers_;
  std::optional<std::string> closed_;
  std::map<std::uint64_t, std::size_t> open_; ///< values of the outputs that have no gradient yet
  std::uint64_t last_ = 0;
};

} // namespace shoal::actors
