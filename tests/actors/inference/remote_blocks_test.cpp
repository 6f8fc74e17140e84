// kernels/learn/remote_blocks over a swarm. The gradients of the input, of prompts and of a LoRA
// between two spans are those of the model on one machine. So it is for each cut, and after a
// death.
#include "kernels/learn/remote_blocks.hpp"
#undef CHECK // libtorch's logging defines one

#include "actors/inference/blocking_passes.hpp"
#include "actors/inference/pass_client.hpp"
#include "actors/inference/probes.hpp"
#include "tests/actors/inference/inference_lab.hpp"

#include <ATen/CPUGeneratorImpl.h>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;
using at::Tensor;

namespace {

constexpr std::int64_t width = 8, layers = 5, samples = 2, length = 4;

/// Takes the answers for a blocking_passes.
class answer_taker final : public protocol_actor {
public:
  answer_taker(caf::actor_config& config, host& on, std::weak_ptr<blocking_passes> to)
      : protocol_actor(config, on), to_(std::move(to)) {}
  caf::behavior make_behavior() override {
    return {[this](const layers_done& m) {
      if (const auto to = to_.lock()) to->answer(m);
    }};
  }

private:
  std::weak_ptr<blocking_passes> to_;
};

struct swarm : inference_lab {
  explicit swarm(const shared_model& model) : inference_lab(model) {
    auto& host = world.add_host("trainer");
    pass_client_config config;
    config.model = "m";
    config.layers = layers;
    config.width = width;
    config.dht = directory_actor();
    client = world.spawn<pass_client>(host, std::move(config));
    blocking_passes::options how{.layers = layers, .width = width};
    how.forward = [this](layers_forward m) {
      m.reply_to = reader;
      world.send(client, std::move(m));
    };
    how.backward = [this](layers_backward m) { world.send(client, std::move(m)); };
    how.wait = [this] { world.run_for(100ms); };
    passes = std::make_shared<blocking_passes>(std::move(how));
    reader = world.spawn<answer_taker>(host, std::weak_ptr(passes));
  }
  void add(const std::vector<layer_span>& cut) {
    for (const auto& each : cut) add_server(each);
    world.settle();
  }
  caf::actor client, reader;
  std::shared_ptr<blocking_passes> passes;
};

Tensor drawn(at::IntArrayRef shape, std::uint64_t seed) {
  auto out = at::empty(shape);
  auto random = stream(seed, "values");
  for (std::int64_t i = 0; i < out.numel(); ++i)
    out.data_ptr<float>()[i] = static_cast<float>(random.normal());
  return out;
}

std::vector<float> values(const Tensor& of) {
  const auto c = of.contiguous();
  return {c.data_ptr<float>(), c.data_ptr<float>() + c.numel()};
}

Tensor like(const std::vector<float>& from, const Tensor& shape) {
  return learn::remote_detail::tensor_of(from, shape.sizes());
}

/// The layers on one machine.
struct local {
  const shared_model& model;
  std::vector<std::vector<float>> entered{};
  Tensor forward(std::size_t first, std::size_t last, const Tensor& x) {
    auto h = values(x);
    for (auto i = first; i < last; ++i) {
      entered.push_back(h);
      h = model.layers[i]->forward({samples, length}, h).value();
    }
    return like(h, x);
  }
  Tensor backward(std::size_t first, std::size_t last, const Tensor& slopes) {
    auto g = values(slopes);
    for (auto i = last; i-- > first;) {
      g = model.layers[i]->backward({samples, length}, entered.back(), g).value();
      entered.pop_back();
    }
    return like(g, slopes);
  }
};

void check_close(const Tensor& ours, const Tensor& expected) {
  REQUIRE(ours.defined());
  const auto most = (ours - expected).abs().max().item<double>();
  CHECK(most < 1e-5 * (1 + expected.abs().max().item<double>()));
}

std::vector<std::vector<layer_span>> all_cuts() {
  std::vector<std::vector<layer_span>> out;
  for (unsigned mask = 0; mask < 1U << (layers - 1); ++mask) {
    std::vector<layer_span> cut;
    std::uint32_t first = 0;
    for (std::uint32_t i = 1; i <= layers; ++i)
      if (i == layers || ((mask >> (i - 1)) & 1U) != 0) {
        cut.push_back({first, i});
        first = i;
      }
    out.push_back(std::move(cut));
  }
  return out;
}

/// A training step with a LoRA after layer 2: its gradients, with `deaths` while it runs.
struct step_of {
  explicit step_of(const shared_model& model)
      : lora(width, 2, 4), x(drawn({samples, length, width}, 1)),
        slopes(drawn({samples, length, width}, 2)) {
    {
      const auto b = drawn({width, 2}, 3), a = drawn({2, width}, 4);
      std::copy_n(b.data_ptr<float>(), b.numel(), lora.b.data_ptr<float>());
      std::copy_n(a.data_ptr<float>(), a.numel(), lora.a.data_ptr<float>());
    }
    local one{model};
    const auto a = lora.a.detach(), b = lora.b.detach();
    const auto h = one.forward(0, 2, x);
    const auto low = at::matmul(h, a.transpose(0, 1));
    output = one.forward(2, layers, h + lora.scale * at::matmul(low, b.transpose(0, 1)));
    const auto g = one.backward(2, layers, slopes);
    const auto flat = [](const Tensor& t) { return t.reshape({-1, t.size(-1)}); };
    const auto g_low = lora.scale * at::matmul(g, b);
    d_b = lora.scale * at::matmul(flat(g).transpose(0, 1), flat(low));
    d_a = at::matmul(flat(g_low).transpose(0, 1), flat(h));
    d_x = one.backward(0, 2, g + at::matmul(g_low, a));
  }
  void check(swarm& in) {
    lora.a.mutable_grad() = Tensor();
    lora.b.mutable_grad() = Tensor();
    const auto input = x.clone().set_requires_grad(true);
    const auto h = lora(learn::remote_blocks(in.passes, {0, 2}, input));
    const auto out = learn::remote_blocks(in.passes, {2, layers}, h);
    CHECK((out - output).abs().max().item<double>() < 1e-5);
    (out * slopes).sum().backward();
    check_close(input.grad(), d_x);
    check_close(lora.a.grad(), d_a);
    check_close(lora.b.grad(), d_b);
  }
  learn::lora_between lora;
  Tensor x, slopes, output, d_x, d_a, d_b;
};

} // namespace

TEST_CASE("remote blocks: each cut has the gradients of one machine and of a LoRA between spans") {
  const auto model = random_model();
  step_of step(model);
  for (const auto& cut : all_cuts()) {
    swarm in(model);
    in.add(cut);
    step.check(in);
  }
}

TEST_CASE("remote blocks: a death in the forward or backward pass leaves the gradients") {
  const auto model = random_model();
  step_of step(model);
  std::size_t deaths = 0, lost = 0;
  for (const auto point : inference_probes::all)
    for (std::uint64_t at = 1;; ++at) {
      CAPTURE(point);
      CAPTURE(at);
      swarm in(model);
      in.add({{0, 1}, {1, 3}, {3, 5}, {0, 2}, {2, 4}, {4, 5}});
      std::uint64_t reached = 0;
      bool died = false;
      in.world.on_probe = [&](mini_host& host, std::string_view here) {
        if (here != point || ++reached != at) return;
        died = true;
        host.kill();
      };
      step.check(in);
      if (!died) break;
      ++deaths;
      lost += in.seen<span_lost>() > 0 ? 1 : 0;
    }
  MESSAGE(deaths, " deaths, ", lost, " of a server in use");
  CHECK(lost > 4);
}

TEST_CASE("remote blocks: prompts get their gradients too, and a pass goes back once") {
  const auto model = random_model();
  swarm in(model);
  in.add({{0, 2}, {2, 5}});
  const auto x = drawn({samples, length, width}, 1), slopes = drawn({samples, length, width}, 2);
  const auto prompts = drawn({layers, 1, width}, 5).set_requires_grad(true);
  const auto out = learn::remote_blocks(in.passes, {0, layers}, x, prompts);
  const auto loss = (out * slopes).sum();
  loss.backward({}, true);
  // One machine.
  auto h = x.clone();
  local one{model};
  std::vector<Tensor> sums;
  for (std::size_t i = 0; i < layers; ++i) {
    h.slice(1, 0, 1).add_(prompts.detach()[static_cast<std::int64_t>(i)]);
    h = one.forward(i, i + 1, h);
  }
  auto g = slopes;
  auto expected = at::zeros({layers, 1, width});
  for (std::size_t i = layers; i-- > 0;) {
    g = one.backward(i, i + 1, g);
    expected[static_cast<std::int64_t>(i)].copy_(g.slice(1, 0, 1).sum(0));
  }
  check_close(out.detach(), h);
  check_close(prompts.grad(), expected);
  CHECK_THROWS_WITH_AS(loss.backward(),
                       "remote layers: the pass has gone back already, and servers keep nothing of "
                       "it: run forward again",
                       std::runtime_error);
}

TEST_CASE("remote blocks: a pass that cannot be computed is an error with the reason") {
  const auto model = random_model();
  swarm in(model);
  in.add({{0, 5}});
  const auto x = drawn({samples, length, width}, 1);
  CHECK_THROWS_WITH_AS(learn::remote_blocks(in.passes, {0, 6}, x),
                       "remote layers: there are no layers 0:6: the model has the layers 0:5",
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(learn::remote_blocks(in.passes, {0, 5}, at::zeros({1, 2, 3})),
                       "remote layers: the input must be float32 [samples, time, 8]",
                       std::runtime_error);
  CHECK_THROWS_AS(learn::remote_blocks(in.passes, {0, 5}, x * std::nan("")), std::runtime_error);
  CHECK(in.passes->backward(7, std::vector<float>(1)).error() == "there is no pass 7");
  CHECK(!learn::remote_blocks(in.passes, {0, 5}, x).requires_grad());
}
