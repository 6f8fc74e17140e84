// The options of the program 'inference', which are the section `inference` of a scenario file. In
// such a run a swarm serves a language model, and clients write with it.
// scenarios/schema/describe.hpp explains describe().
#pragma once

#include "kernels/base/units.hpp"
#include "scenarios/schema/rule.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct inference_options {
  std::string model = "random"; ///< a path, 'random' or 'timing'
  std::uint64_t layers = 70;    ///< with 'timing', as the next one
  std::uint64_t width = 14336;
  std::string task = "write"; ///< or 'forward', or 'tune_prompts'
  std::uint64_t batch = 1;
  std::uint64_t length = 128;
  std::uint64_t prompt_length = 4; ///< with 'tune_prompts', as the next ones
  bool deep_prompts = true;
  double learning_rate = 0.05;
  std::string tokenizer;
  std::vector<std::string> servers; ///< the layers of each server, '0:2' or '2'; required
  std::string placement = "fixed";  ///< or 'auto'
  duration rebalance_every = std::chrono::minutes(2);
  std::string prompt = "Once upon a time";
  std::uint64_t tokens = 100;
  double temperature = 0;
  std::uint64_t top_k = 0;
  double top_p = 1;
  std::uint64_t clients = 1;
  duration delay = std::chrono::milliseconds(25);
  data_rate rate{100e6};
  duration layer_time = std::chrono::milliseconds(1);
  duration layer_batch_time{};
  duration context_time{};
  std::string network = "max_min"; ///< a netem::transfer_model
  std::uint64_t cache = 1 << 20;
  std::string route = "fastest"; ///< or 'spread'
  bool push = false;
  double check = 0;
  std::vector<std::string> wrong_servers; ///< names, as 'server-0' for the first of `servers`
  duration wrong_every{};
  double wrong_strength = 1;
  std::string activations = "none"; ///< a codec of activation_codec()
  std::string weights = "float32";  ///< a learn::weight_format
  duration lifetime{};
  duration downtime = std::chrono::seconds(10);
  duration stop_time = std::chrono::hours(1);
  bool loopback = false; ///< real connections on this machine; from the scenario's `world`
  bool operator==(const inference_options&) const = default;
};

template <class V>
void describe(V& v, inference_options& o) {
  v.field("model", o.model,
          "a path from the current folder: a .bin of llama2.c, a folder of Hugging Face "
          "(LLaMA, GPT-2 or BLOOM), or a checkpoint of a transformer. `random` is a model "
          "of bytes with random "
          "weights and 5 layers. `timing` has sizes and no weights: it predicts the speed of a "
          "swarm. Its text is empty, and each byte of its prompt is a token");
  v.field("layers", o.layers, "the layers of the model `timing`", {.at_least = 1, .at_most = 1024});
  v.field("width", o.width, "the values of a token between two layers of the model `timing`",
          {.at_least = 1, .at_most = 1e6});
  v.field("task", o.task,
          "`write`: clients write tokens, one after the other. `forward`: they run batches through "
          "all layers, as for training. `tune_prompts`: they learn vectors that are added before "
          "layers, so that the model predicts the text `prompt`",
          {.one_of = "write, forward, tune_prompts"});
  v.field("batch", o.batch, "sequences of a batch of the tasks `forward` and `tune_prompts`",
          {.at_least = 1, .at_most = 65536});
  v.field("length", o.length, "tokens of each sequence of a batch",
          {.at_least = 1, .at_most = 65536});
  v.field("prompt_length", o.prompt_length, "positions that `tune_prompts` puts before a sequence",
          {.at_least = 1, .at_most = 1024});
  v.field("deep_prompts", o.deep_prompts,
          "`tune_prompts` learns a prompt before each layer, and not only before the first one");
  v.field("learning_rate", o.learning_rate, "the rate of AdamW, with which `tune_prompts` learns",
          {.above = 0, .at_most = 10});
  v.field("tokenizer", o.tokenizer,
          "the tokenizer that belongs to the model, of llama2.c or of Hugging Face, or `bytes`; "
          "default: tok<vocabulary>.bin, tokenizer.bin or tokenizer.json beside it");
  v.field("servers", o.servers,
          "the layers of each server, like `0:2` for the first two. With `placement: auto` a "
          "number of layers is enough, like `2`",
          {.required = true});
  v.field("placement", o.placement,
          "`fixed`: servers hold the layers of `servers`. `auto`: a server holds as many layers, "
          "and takes those whose servers compute the fewest tokens a second. It moves when that "
          "weakest layer gains a third by it. No move takes the last server of a layer away",
          {.one_of = "fixed, auto"});
  v.field("rebalance_every", o.rebalance_every,
          "the mean time between two thoughts of a server of `placement: auto` about moving",
          {.above = 0});
  v.field("prompt", o.prompt, "the text that the clients continue");
  v.field("tokens", o.tokens,
          "tokens that each client writes; with the task `forward`: batches; with "
          "`tune_prompts`: steps",
          {.at_least = 1, .at_most = 1e6});
  v.field("temperature", o.temperature, "0 always takes the likeliest token", {.at_least = 0});
  v.field("top_k", o.top_k, "draws among the k likeliest tokens; 0: all");
  v.field("top_p", o.top_p, "draws among the likeliest tokens whose probabilities reach p",
          {.above = 0, .at_most = 1});
  v.field("clients", o.clients, "how many write at once", {.at_least = 1, .at_most = 1e5});
  v.field("delay", o.delay, "between two hosts, one way");
  v.field("rate", o.rate, "the rate of each line, both ways", {.above = 0});
  v.field("layer_time", o.layer_time, "the time of one token in one layer of a server");
  v.field(
      "layer_batch_time", o.layer_batch_time,
      "the time that a server needs for a layer beside `layer_time`, once for all tokens that it "
      "computes together");
  v.field("context_time", o.context_time,
          "the time of one token in one layer for each token before it");
  v.field("network", o.network,
          "the model of a transfer's rate, as in `network.model` of a training run",
          {.one_of = "max_min, lv08, tcp"});
  v.field("cache", o.cache, "tokens times layers that each server keeps for sessions",
          {.at_least = 1});
  v.field("route", o.route,
          "`fastest`: the least round trips and computing; `spread`: servers are drawn by their "
          "number of layers, which shares out the load of many clients",
          {.one_of = "fastest, spread"});
  v.field("push", o.push,
          "each server sends its output to the next server, too, and not only to the client. A "
          "token then takes half a round trip for each hop. The text is the same");
  v.field("check", o.check,
          "the share of tokens after which other servers compute the outputs of a client's servers "
          "again. With more than 0 they also do so at the end of the text. A server that is found "
          "wrong gets no work any more, and the text goes back to its last right token",
          {.at_least = 0, .at_most = 1, .fraction = true});
  v.field(
      "wrong_servers", o.wrong_servers,
      "names of servers that compute wrongly, such as `server-0` for the first one of `servers`");
  v.field("wrong_every", o.wrong_every,
          "at least this time between two wrong outputs of a server; 0: each output is wrong");
  v.field("wrong_strength", o.wrong_strength,
          "a wrong output is multiplied by 1 plus so many times a normal number", {.above = 0});
  v.field("activations", o.activations,
          "codec of activations on the wire. All but `none` round at each hop, so that the text "
          "depends on the route",
          {.one_of = "none, float16, bfloat16, blockwise8"});
  v.field("weights", o.weights, "form of the weights in a server's memory: 4, 2 or 1 bytes each",
          {.one_of = "float32, bfloat16, int8"});
  v.field("lifetime", o.lifetime, "the mean life of a server, exponential; 0: for ever");
  v.field("downtime", o.downtime, "the mean time after which a dead server is back, exponential");
  v.field("stop_time", o.stop_time, "the run ends then, so long after its beginning");
}

} // namespace shoal::scenarios
