// Tokens per second of a pretrained LLaMA, computed in three ways. Plain loops over the weights, as
// a C program has them. The decoder in one process. A swarm of three servers and a client in
// virtual time. All three write the same text. They alternate, and each ratio is of one round.
// It prints rows of a table: median, least and most.
//   inference_bench stories260K.bin [tokens] [rounds]
#include "kernels/learn/formats/llama2c.hpp"
#include "kernels/learn/model_file.hpp"
#include "scenarios/inference/inference_swarm.hpp"
#include "scenarios/inference/model_pieces.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

using namespace shoal;

namespace {

/// The model as one function of plain loops: one token at a time, row by row. HF's order of rows.
class plain_loops {
public:
  plain_loops(const learn::served_model& from) : c_(from.model->config()), w_(from.parameters) {
    const auto kv = c_.dim / c_.heads * c_.kv_heads;
    keys_.resize(static_cast<std::size_t>(c_.layers * c_.context * kv));
    values_ = keys_;
  }

  std::vector<float> step(learn::token_id token, std::int64_t position) {
    const auto d = c_.dim, hd = d / c_.heads, kv = hd * c_.kv_heads;
    const float* w = w_.data();
    const float* embedding = w;
    w += c_.vocabulary * d;
    std::vector<float> x(embedding + token * d, embedding + (token + 1) * d), h(x), q(x), att(x);
    std::vector<float> gate(static_cast<std::size_t>(c_.hidden)), up(gate);
    std::vector<float> p(static_cast<std::size_t>(position + 1));
    const auto product = [&](std::vector<float>& out, const float* in, std::int64_t n,
                             std::int64_t inputs) {
      for (std::int64_t i = 0; i < n; ++i) {
        float sum = 0;
        for (std::int64_t j = 0; j < inputs; ++j) sum += w[i * inputs + j] * in[j];
        out[static_cast<std::size_t>(i)] = sum;
      }
      w += n * inputs;
    };
    const auto norm = [&] {
      float squares = 0;
      for (std::int64_t i = 0; i < d; ++i) squares += x[i] * x[i];
      const float r = 1 / std::sqrt(squares / static_cast<float>(d) + 1e-5F);
      for (std::int64_t i = 0; i < d; ++i) h[i] = w[i] * x[i] * r;
      w += d;
    };
    const auto rotate = [&](float* v, std::int64_t heads) {
      for (std::int64_t a = 0; a < heads; ++a, v += hd)
        for (std::int64_t i = 0; i < hd / 2; ++i) {
          const float angle =
              static_cast<float>(position) *
              std::pow(10000.F, -2.F * static_cast<float>(i) / static_cast<float>(hd));
          const float c = std::cos(angle), s = std::sin(angle), a0 = v[i], a1 = v[i + hd / 2];
          v[i] = a0 * c - a1 * s;
          v[i + hd / 2] = a0 * s + a1 * c;
        }
    };
    for (std::int64_t l = 0; l < c_.layers; ++l) {
      std::vector<float> k(static_cast<std::size_t>(kv)), v(k);
      norm();
      product(q, h.data(), d, d);
      product(k, h.data(), kv, d);
      product(v, h.data(), kv, d);
      rotate(q.data(), c_.heads);
      rotate(k.data(), c_.kv_heads);
      float* ks = keys_.data() + l * c_.context * kv;
      float* vs = values_.data() + l * c_.context * kv;
      std::copy(k.begin(), k.end(), ks + position * kv);
      std::copy(v.begin(), v.end(), vs + position * kv);
      std::fill(att.begin(), att.end(), 0.F);
      for (std::int64_t a = 0; a < c_.heads; ++a) {
        const auto at = a / (c_.heads / c_.kv_heads) * hd;
        float most = -1e30F, sum = 0;
        for (std::int64_t t = 0; t <= position; ++t) {
          float score = 0;
          for (std::int64_t i = 0; i < hd; ++i) score += q[a * hd + i] * ks[t * kv + at + i];
          p[t] = score / std::sqrt(static_cast<float>(hd));
          most = std::max(most, p[t]);
        }
        for (std::int64_t t = 0; t <= position; ++t) sum += p[t] = std::exp(p[t] - most);
        for (std::int64_t t = 0; t <= position; ++t)
          for (std::int64_t i = 0; i < hd; ++i) att[a * hd + i] += p[t] / sum * vs[t * kv + at + i];
      }
      product(h, att.data(), d, d);
      for (std::int64_t i = 0; i < d; ++i) x[i] += h[i];
      norm();
      product(gate, h.data(), c_.hidden, d);
      product(up, h.data(), c_.hidden, d);
      for (std::size_t i = 0; i < gate.size(); ++i) up[i] *= gate[i] / (1 + std::exp(-gate[i]));
      product(h, up.data(), d, c_.hidden);
      for (std::int64_t i = 0; i < d; ++i) x[i] += h[i];
    }
    norm();
    std::vector<float> logits(static_cast<std::size_t>(c_.vocabulary));
    w = embedding;
    product(logits, h.data(), c_.vocabulary, d);
    return logits;
  }

private:
  learn::decoder_config c_;
  const std::vector<float>& w_;
  std::vector<float> keys_, values_;
};

double seconds_of(const std::function<void()>& work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

void print(const char* what, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::printf("| %s | %.2f | %.2f | %.2f |\n", what, values[values.size() / 2], values.front(),
              values.back());
}

} // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: inference_bench MODEL.bin [tokens] [rounds]\n");
    return 2;
  }
  const auto model = learn::load_served_model(arguments[1], {});
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().c_str());
    return 1;
  }
  const auto tokens = static_cast<std::uint32_t>(count > 2 ? std::atoi(arguments[2]) : 200);
  const int rounds = count > 3 ? std::atoi(arguments[3]) : 11;
  const auto layers = static_cast<std::uint32_t>(model->model->layers());
  scenarios::inference_swarm swarm;
  swarm.model = &*model;
  swarm.servers = {{0, layers / 3}, {layers / 3, 2 * layers / 3}, {2 * layers / 3, layers}};
  swarm.prompt = {1};
  swarm.tokens = tokens;
  std::vector<double> plain, alone, three, alone_ratio, three_ratio;
  for (int round = 0; round < rounds; ++round) {
    std::vector<learn::token_id> a, b, c;
    plain.push_back(tokens / seconds_of([&] {
                      plain_loops loops(*model);
                      learn::token_id token = 1;
                      for (std::uint32_t i = 0; i < tokens; ++i) {
                        const auto logits = loops.step(token, i);
                        token = std::max_element(logits.begin(), logits.end()) - logits.begin();
                        a.push_back(token);
                      }
                    }));
    alone.push_back(tokens / seconds_of([&] {
                      b = scenarios::write_alone(*model, {1}, tokens, {.temperature = 0}, 1, 1);
                    }));
    three.push_back(tokens / seconds_of([&] {
                      auto run = scenarios::run_inference_swarm(swarm);
                      if (run) c = run->texts[0];
                    }));
    if (a != b || b != c) {
      std::fprintf(stderr, "the texts differ\n");
      return 1;
    }
    alone_ratio.push_back(alone.back() / plain.back());
    three_ratio.push_back(three.back() / plain.back());
  }
  print("plain loops, tokens/s", plain);
  print("decoder in one process, tokens/s", alone);
  print("three servers in virtual time, tokens/s", three);
  print("decoder / plain loops", alone_ratio);
  print("three servers / plain loops", three_ratio);
  // A session's memory, and the formula of docs/inference.md.
  const auto pieces =
      scenarios::pieces_of(*model, {0, layers}, learn::weight_format::float32).layers;
  const auto& config = model->model->config();
  std::size_t bytes = 0;
  for (const auto& each : pieces)
    bytes += each->make_cache(1, tokens).value().floats() * sizeof(float);
  const auto formula = static_cast<std::size_t>(2 * config.kv_heads * (config.dim / config.heads) *
                                                4 * config.layers) *
                       tokens;
  print("cache of a session of these tokens, bytes", {static_cast<double>(bytes)});
  print("the formula, bytes", {static_cast<double>(formula)});
  return 0;
}
