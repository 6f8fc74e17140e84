#include "scenarios/workloads/albert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#if SHOAL_WITH_LEARN
#include "kernels/learn/albert.hpp"
#include "kernels/learn/pair_corpus.hpp"
#include "kernels/learn/pair_vocabulary_file.hpp"
#include "kernels/learn/torch_loader.hpp"
#include "scenarios/pipeline/albert_stages.hpp"
#endif
#include "actors/training/optimizer_step.hpp"
#include "kernels/base/check.hpp"
#include "kernels/learn/albert_description.hpp"
#include "kernels/transformer_flops.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/schema/check_scenario.hpp"
#include "scenarios/schema/describe.hpp"
#include "scenarios/workloads/check_texts.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/training_steps.hpp"
#include "scenarios/workloads/workload.hpp"

namespace shoal::scenarios {

constexpr auto names_of(sample_place) {
  return std::array{enum_name<sample_place>{sample_place::shard, "shard"},
                    enum_name<sample_place>{sample_place::peers, "peers"}};
}
constexpr auto names_of(document_kind) {
  return std::array{enum_name<document_kind>{document_kind::file, "file"},
                    enum_name<document_kind>{document_kind::paragraph, "paragraph"},
                    enum_name<document_kind>{document_kind::line, "line"}};
}

// A workload may name its parts as other workloads name theirs.
namespace albert_workload_parts {
namespace {

/// The shortest sample: three special tokens, and a text that is worth masking.
constexpr std::uint64_t least_length = 8;

#if SHOAL_WITH_LEARN
result<learn::pair_vocabulary> vocabulary_of(const albert_options& options) {
  return learn::load_pair_vocabulary(options.tokenizer,
                                     static_cast<std::int64_t>(options.vocabulary));
}

learn::masking_options masking_of(const albert_options& options, std::uint64_t seed) {
  return {static_cast<std::int64_t>(options.length), options.masked, seed};
}

learn::pair_options pairs_of(const scenario& from, const albert_options& options) {
  learn::pair_options out;
  out.masking = masking_of(options, from.seed);
  out.documents = options.documents == document_kind::file   ? learn::document_unit::file
                  : options.documents == document_kind::line ? learn::document_unit::line
                                                             : learn::document_unit::paragraph;
  out.sentence_ends = options.sentence_ends;
  out.holdout = from.data.holdout;
  out.shuffle_buffer = from.data.shuffle_buffer;
  out.field = from.data.field;
  out.held_out_most = static_cast<std::size_t>(options.held_out_samples);
  return out;
}

/// Pairs of segments as they are streamed, and the samples that the model takes. Peers and shards
/// make the same samples.
class sample_maker {
public:
  sample_maker(const scenario& from, const albert_options& options,
               learn::pair_vocabulary vocabulary)
      : by_peers_(options.prepared_by == sample_place::peers), vocabulary_(std::move(vocabulary)),
        masking_(masking_of(options, from.seed)), prepared_{static_cast<std::int64_t>(
                                                                options.vocabulary),
                                                            static_cast<std::int64_t>(
                                                                options.length)},
        text_{learn::pair_text_bytes(masking_.length)} {}

  std::size_t bytes() const { return by_peers_ ? text_.bytes() : prepared_.bytes(); }
  std::size_t prepared_bytes() const { return prepared_.bytes(); }

  void write(const learn::pair_corpus& from, std::uint64_t index, std::span<std::byte> out) const {
    if (by_peers_) return text_.write(from.pair(index), index, out);
    prepared_.write(from.sample(index), out);
  }

  /// Samples in the form of the model. Requires: whole samples.
  std::vector<std::byte> prepared(std::span<const std::byte> streamed) const {
    if (!by_peers_) return {streamed.begin(), streamed.end()};
    SHOAL_CHECK(text_.check(streamed).ok(), "samples of other hosts are checked before use");
    std::vector<std::byte> out;
    for (std::size_t at = 0; at < streamed.size(); at += text_.bytes()) {
      const auto [pair, index] = text_.read(streamed.subspan(at, text_.bytes()));
      out.resize(out.size() + prepared_.bytes());
      prepared_.write(learn::masked_sample(pair, index, vocabulary_, masking_),
                      std::span(out).last(prepared_.bytes()));
    }
    return out;
  }

private:
  bool by_peers_;
  learn::pair_vocabulary vocabulary_;
  learn::masking_options masking_;
  learn::albert_format prepared_;
  learn::pair_format text_;
};

class albert_work final : public actors::workload {
public:
  albert_work(const scenario& from, const albert_options& options,
              const kernels::optimizer_config& optimizer, const learn::pair_vocabulary& vocabulary)
      : model_(model_of(options), options.checkpoint), maker_(from, options, vocabulary),
        optimizer_(optimizer), seed_(from.seed) {}

  const learn::albert& model() const noexcept { return model_; }
  const sample_maker& maker() const noexcept { return maker_; }
  const kernels::optimizer_config& optimizer() const noexcept { return optimizer_; }

  std::uint64_t value_count() const override { return model_.parameter_count(); }
  std::vector<kernels::tensor_slot> layout() const override { return model_.layout(); }
  std::uint64_t sample_bytes() const override { return maker_.bytes(); }

  actors::model_state initial() const override {
    return actors::fresh_state(optimizer_, model_.initial_parameters(seed_));
  }

  double accumulate(const actors::model_state& at, std::span<const std::byte> samples,
                    std::uint64_t count, std::span<double> gradient_sum) const override {
    thread_local std::vector<float> gradient;
    gradient.assign(value_count(), 0.0f);
    const auto loss = model_.accumulate_gradient(at.parameters.floats(), maker_.prepared(samples),
                                                 count, gradient);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient_sum[i] += gradient[i];
    return loss;
  }

  payload repaired(payload averaged) const override {
    return kernels::repaired_state(optimizer_, value_count(), std::move(averaged));
  }

  actors::model_state step(const actors::model_state& at,
                           const payload& mean_gradient) const override {
    return actors::step_from(at, optimizer_, mean_gradient, layout(), learn::albert_decays);
  }

private:
  learn::albert model_;
  sample_maker maker_;
  kernels::optimizer_config optimizer_;
  std::uint64_t seed_;
};

class pair_source final : public actors::sample_source {
public:
  pair_source(std::shared_ptr<const learn::pair_corpus> corpus, const sample_maker& maker)
      : corpus_(std::move(corpus)), maker_(maker) {}
  std::uint32_t sample_bytes() const override { return static_cast<std::uint32_t>(maker_.bytes()); }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    maker_.write(*corpus_, index, out);
  }

private:
  std::shared_ptr<const learn::pair_corpus> corpus_;
  sample_maker maker_;
};

class prepared_albert final : public prepared_workload {
public:
  prepared_albert(const scenario& from, const albert_options& options,
                  const kernels::optimizer_config& optimizer,
                  const learn::pair_vocabulary& vocabulary,
                  std::optional<learn::pair_corpus> corpus)
      : scenario_(from),
        corpus_(corpus ? std::make_shared<const learn::pair_corpus>(std::move(*corpus)) : nullptr),
        work_(std::make_shared<const albert_work>(from, options, optimizer, vocabulary)),
        source_(corpus_ ? std::make_shared<const pair_source>(corpus_, work_->maker()) : nullptr) {
    if (corpus_) held_out_ = corpus_->held_out_samples();
  }

  std::shared_ptr<const actors::workload> work() const override { return work_; }
  std::shared_ptr<const actors::sample_source> source() const override { return source_; }
  std::string data_digest() const override {
    return corpus_ ? corpus_->content_digest().hex() : std::string{};
  }

  /// Nats for each masked token. The order of the segments is no part of it, so that the loss can
  /// be compared with the cross-entropy of single tokens.
  double held_out_loss(const actors::model_state& state) const override {
    if (!corpus_) return std::numeric_limits<double>::quiet_NaN();
    learn::use_one_thread();
    const auto parameters = state.parameters.floats();
    return work_->model().quality(parameters, held_out_, corpus_->held_out_count()).tokens;
  }

  bool has_references() const override { return corpus_ != nullptr; }
  reference_losses references(const reference_options& how) const override {
    // The same steps as the swarm's, so with the same tensors left without decay.
    reference_losses out;
    out.baseline =
        loss_alone(*this, scenario_.training.micro_batch, traits_of(scenario_).baseline_batch, how);
    return out;
  }

  result<void> save(const actors::model_state& state, std::uint64_t data_from,
                    const std::string& path) const override {
    return save_checkpoint(scenario_, work_->optimizer(), data_digest(), state, data_from, path);
  }
  std::string sample_text(const actors::model_state&, std::uint64_t) const override { return {}; }

private:
  scenario scenario_;
  std::shared_ptr<const learn::pair_corpus> corpus_;
  std::shared_ptr<const albert_work> work_;
  std::shared_ptr<const actors::sample_source> source_;
  std::vector<std::byte> held_out_;
};

result<learn::pair_corpus> corpus_of(const scenario& from,
                                     const learn::pair_vocabulary& vocabulary) {
  const auto& options = from.workload.as<albert_options>();
  std::vector<learn::text_source> sources;
  for (std::size_t i = 0; i < from.data.files.size(); ++i)
    sources.push_back(
        {{from.data.files[i]}, i < options.weights.size() ? options.weights[i] : 1.0});
  return learn::pair_corpus::load(sources, vocabulary, pairs_of(from, options));
}

result<std::unique_ptr<prepared_workload>> prepare(const scenario& from, bool needs_data) {
  const auto& options = from.workload.as<albert_options>();
  if (auto valid = learn::validate(model_of(options)); !valid)
    return failure{"workload: " + valid.error()};
  auto vocabulary = vocabulary_of(options);
  // Peers that get prepared samples never see text.
  const bool reads_text = needs_data || options.prepared_by == sample_place::peers;
  if (!vocabulary && reads_text) return failure{vocabulary.error()};
  auto corpus = vocabulary ? corpus_of(from, *vocabulary)
                           : result<learn::pair_corpus>(failure{vocabulary.error()});
  if (!corpus && needs_data) return failure{corpus.error()};
  const auto optimizer = optimizer_of(from.training.optimizer);
  if (!optimizer) return failure{optimizer.error()};
  if (auto loaded = learn::load_torch(); !loaded) return failure{loaded.error()};
  return std::unique_ptr<prepared_workload>{std::make_unique<prepared_albert>(
      from, options, *optimizer, vocabulary ? *vocabulary : learn::byte_pair_vocabulary(),
      corpus ? std::optional(std::move(*corpus)) : std::nullopt)};
}

result<std::shared_ptr<const actors::stage_model>> cut_of(const workload_choice& of,
                                                          std::uint32_t stages) {
  const auto& o = of.as<albert_options>();
  if (o.prepared_by == sample_place::peers)
    return failure{"the hosts of stages read tokens, and workload.prepared_by is 'peers', which "
                   "streams text: leave prepared_by out"};
  return cut_albert(model_of(o), o.checkpoint, stages);
}

#else
result<std::unique_ptr<prepared_workload>> prepare(const scenario&, bool) {
  return failure{"workload.kind 'albert' needs libtorch, which this build was made without"};
}
#endif

/// On a cluster only the host that prepares samples has the file.
void check_tokenizer(const scenario& what, checking& report) {
  if (what.world == "cluster" || !report.sound({"workload.tokenizer", "workload.vocabulary"}))
    return;
#if SHOAL_WITH_LEARN
  auto options = what.workload.as<albert_options>();
  options.tokenizer = path_from(report.folder(), options.tokenizer);
  if (const auto loaded = vocabulary_of(options); !loaded)
    report.error(report.given("workload.vocabulary") || options.tokenizer.empty()
                     ? "workload.vocabulary"
                     : "workload.tokenizer",
                 loaded.error());
#endif
}

void check_sizes(const scenario& what, checking& report) {
  const auto& o = what.workload.as<albert_options>();
  if (report.sound({"workload.hidden", "workload.heads"}) && o.hidden % o.heads != 0)
    report.error(report.given("workload.heads") ? "workload.heads" : "workload.hidden",
                 fmt::format("hidden {} cannot be divided among {} heads", o.hidden, o.heads));
  if (report.sound({"workload.weights", "data.files"}) && !o.weights.empty()) {
    if (o.weights.size() != what.data.files.size())
      report.error("workload.weights",
                   fmt::format("there are {} weights for {} entries of data.files; give one each",
                               o.weights.size(), what.data.files.size()));
    else if (std::any_of(o.weights.begin(), o.weights.end(), [](double w) { return !(w > 0); }))
      report.error("workload.weights", "each weight of a source must be above 0");
  }
  check_decay(what, "albert", report);
}

} // namespace
} // namespace albert_workload_parts

template <class V>
void describe(V& v, albert_options& o) {
  using namespace albert_workload_parts;
  v.field("layers", o.layers, "uses of the shared layer", {.at_least = 1, .at_most = 1024});
  v.field("heads", o.heads, "of attention; divides `hidden`", {.at_least = 1, .at_most = 1024});
  v.field("hidden", o.hidden, "width of the layers", {.at_least = 1, .at_most = 65536});
  v.field("embedding", o.embedding, "width of the embeddings", {.at_least = 1, .at_most = 65536});
  v.field("feed_forward", o.feed_forward, "width inside the feed-forward part",
          {.at_least = 1, .at_most = 1 << 20});
  v.field("length", o.length, "most tokens in a sample, of two segments and three special tokens",
          {.at_least = least_length, .at_most = 5461});
  v.field(
      "tokenizer", o.tokenizer,
      "a `tokenizer.json`, relative to the scenario's folder, as `shoal tokenizer train` writes "
      "it; without one, tokens are bytes",
      {.hide_default = true});
  v.field("vocabulary", o.vocabulary,
          "tokens of the model, at least those of the tokenizer; 261 for bytes",
          {.at_least = 8, .at_most = 1 << 24});
  v.field("checkpoint", o.checkpoint,
          "activations are computed again, layer by layer, in the backward pass: less memory, "
          "about a third more work, the same results",
          {.hide_default = true});
  v.field("prepared_by", o.prepared_by,
          "the hosts that turn text into tokens and mask some: the `shard`, or the `peers`, which "
          "then get the text; the samples are the same",
          {.hide_default = true});
  v.field(
      "documents", o.documents,
      "the text that is one document: a `file`, a `paragraph` between empty lines, or a `line`, as "
      "in JSON lines. No sample has text of two documents, and whole documents are held out");
  v.field("weights", o.weights,
          "share of the samples from each entry of `data.files`, in their order",
          {.hide_default = true, .otherwise = "equal"});
  v.field("sentence_ends", o.sentence_ends,
          "characters that end a sentence; an ASCII character does so only before white space",
          {.hide_default = true});
  v.field("masked", o.masked, "share of the tokens that the model predicts",
          {.above = 0, .at_most = 1, .fraction = true, .hide_default = true});
  v.field("held_out_samples", o.held_out_samples,
          "held-out samples that measure the loss, spread over the held-out text",
          {.at_least = 1, .at_most = 65536, .hide_default = true});
}

learn::albert_config model_of(const albert_options& from) {
  using namespace albert_workload_parts;
  learn::albert_config out;
  out.layers = static_cast<std::int64_t>(from.layers);
  out.heads = static_cast<std::int64_t>(from.heads);
  out.hidden = static_cast<std::int64_t>(from.hidden);
  out.embedding = static_cast<std::int64_t>(from.embedding);
  out.feed_forward = static_cast<std::int64_t>(from.feed_forward);
  out.positions = static_cast<std::int64_t>(from.length);
  out.vocabulary = static_cast<std::int64_t>(from.vocabulary);
  return out;
}

#if SHOAL_WITH_LEARN
result<masked_task> masked_task_of(const scenario& from) {
  using namespace albert_workload_parts;
  if (!from.workload.options.holds<albert_options>())
    return failure{"workload.kind is " + from.workload.name() + ", which masks no tokens"};
  const auto config = model_of(from.workload.as<albert_options>());
  if (auto valid = learn::validate(config); !valid) return failure{"workload: " + valid.error()};
  const auto vocabulary = vocabulary_of(from.workload.as<albert_options>());
  if (!vocabulary) return failure{vocabulary.error()};
  const auto corpus = corpus_of(from, *vocabulary);
  if (!corpus) return failure{corpus.error()};
  if (auto loaded = learn::load_torch(); !loaded) return failure{loaded.error()};
  const auto model = std::make_shared<const learn::albert>(config);
  const auto held_out = std::make_shared<const std::vector<std::byte>>(corpus->held_out_samples());
  masked_task out;
  out.samples = corpus->held_out_count();
  out.unigram_loss = corpus->unigram_loss();
  const auto first = model->quality(model->initial_parameters(from.seed), *held_out, out.samples);
  out.labels = first.labels;
  out.measure = [model, held_out, count = out.samples](std::span<const float> parameters) {
    learn::use_one_thread();
    const auto found = model->quality(parameters, *held_out, count);
    return masked_quality{found.tokens, found.order, found.right_tokens, found.right_order};
  };
  return out;
}
#else
result<masked_task> masked_task_of(const scenario&) {
  return failure{"this shoal was built without libtorch (SHOAL_WITH_LEARN=OFF)"};
}
#endif

workload_definition albert_workload() {
  using namespace albert_workload_parts;
  workload_definition out;
  out.name = "albert";
  out.meaning = "an encoder of text, pre-trained with masked tokens and the order of segments";
  out.options = options_box::of(albert_options{});
  out.learns_text = true;
  out.check = [](const scenario& what, checking& report) {
    check_sizes(what, report);
    check_tokenizer(what, report);
    check_texts(what, "albert", report);
  };
  out.possible = [](const workload_choice& of) {
    return learn::validate(model_of(of.as<albert_options>()));
  };
  out.tensors = [](const workload_choice& of) {
    return learn::albert_layout(model_of(of.as<albert_options>()));
  };
  // The heads predict only the masked tokens, which is little beside the layers.
  out.sample_flops = [](const workload_choice& of) {
    const auto& o = of.as<albert_options>();
    return kernels::forward_and_backward * static_cast<double>(o.layers) *
           kernels::layer_forward_flops(static_cast<double>(o.length),
                                        static_cast<double>(o.hidden),
                                        static_cast<double>(o.feed_forward));
  };
  out.describe_model = [](const workload_choice& of) {
    return learn::description_of(model_of(of.as<albert_options>()));
  };
  out.fingerprint = [](const workload_choice& of) {
    const auto& o = of.as<albert_options>();
    return fmt::format("albert: {}{}", learn::description_of(model_of(o)),
                       o.checkpoint ? ", checkpoint" : "");
  };
#if SHOAL_WITH_LEARN
  out.cut = cut_of;
#endif
  out.shape_between_stages = [](const workload_choice& of) {
    const auto& o = of.as<albert_options>();
    // The last value says whether the token is padding.
    return sample_shape{static_cast<std::uint32_t>(o.length), o.hidden + 1};
  };
  out.prepare = prepare;
  out.starter = {
      "a small ALBERT over bytes",
      "  layers: 4\n  heads: 4\n  hidden: 128\n  embedding: 32\n  feed_forward: 512\n  length: "
      "64\n",
      "{kind: lamb, learning_rate: 0.005, beta2: 0.999, epsilon: 1e-6, weight_decay: 0.01, "
      "clip_norm: 1, warmup_steps: 10}"};
  return out;
}

} // namespace shoal::scenarios
