// pagerank SRC: which nodes of a graph matter most. Records of 8 bytes: two numbers of 32 bits each, from where a link
// goes and to where. Every worker follows the links of its own component, and all add up what came of that.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <tuple>

#include <CLI/CLI.hpp>

#include "pif/tool/reduce.h"
#include "pif/tool/tool_main.h"

namespace {

constexpr double kStays = 0.85;  // who follows a link, and does not begin anywhere

struct Wish {
  std::uint32_t rounds = 20, shown = 10;
  static auto members(auto& self) { return std::tie(self.rounds, self.shown); }
};
struct Node {
  std::uint64_t number = 0;
  double rank = 0;
  static auto members(auto& self) { return std::tie(self.number, self.rank); }
};
struct Ranked {
  std::vector<Node> nodes;
  static auto members(auto& self) { return std::tie(self.nodes); }
};

// The links of this worker, by where they go.
struct Links {
  std::vector<std::uint32_t> from, to;
};

pif::Result<Links> read_links(pif::tool::Worker& worker, pif::tool::Input& in) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // to, from
  pairs.reserve(in.is_here() ? in.rows() : 0);
  for (pif::tool::RowBatch batch; in.is_here();) {
    PIF_TRY_VALUE(const bool more, in.next(batch));
    if (!more) break;
    batch.for_each([&](auto record) {
      std::uint32_t ends[2] = {0, 0};
      std::memcpy(ends, record.data(), std::min(sizeof ends, record.size()));
      pairs.emplace_back(ends[1], ends[0]);
    });
    worker.progress(in.bytes_read(), in.bytes());
  }
  std::sort(pairs.begin(), pairs.end());
  Links links;
  for (const auto& [to, from] : pairs) {
    links.from.push_back(from);
    links.to.push_back(to);
  }
  return links;
}

pif::Result<std::uint64_t> count_nodes(pif::tool::Worker& worker, pif::tool::Team& team, const Links& links) {
  std::uint64_t count = 0;
  for (const auto* ends : {&links.from, &links.to})
    for (const std::uint32_t end : *ends) count = std::max<std::uint64_t>(count, std::uint64_t{end} + 1);
  const auto larger = [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); };
  PIF_TRY_VALUE(const auto most,
                pif::tool::all_reduce(team, worker, std::span<const std::uint64_t>(&count, 1), larger));
  return most.front();
}

pif::Result<std::vector<double>> rank_nodes(pif::tool::Worker& worker, pif::tool::Team& team, const Links& links,
                                            std::uint32_t rounds) {
  PIF_TRY_VALUE(const std::uint64_t count, count_nodes(worker, team, links));
  std::vector<std::uint32_t> own_degrees(count);
  for (const std::uint32_t from : links.from) ++own_degrees[from];
  PIF_TRY_VALUE(const auto degrees,
                pif::tool::all_reduce(team, worker, std::span<const std::uint32_t>(own_degrees), std::plus<>()));
  const double nodes = static_cast<double>(count);
  std::vector<double> ranks(count, 1 / nodes), sums(count);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    worker.begin_phase("round");
    double ends_here = 0;  // of nodes without a link, who begin anywhere
    for (std::uint64_t i = 0; i < count; ++i) {
      if (degrees[i] == 0)
        ends_here += ranks[i];
      else
        ranks[i] /= degrees[i];
    }
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t i = 0; i < links.to.size(); ++i) sums[links.to[i]] += ranks[links.from[i]];
    PIF_TRY_VALUE(ranks, pif::tool::all_reduce(team, worker, std::span<const double>(sums), std::plus<>()));
    for (double& rank : ranks) rank = (1 - kStays + kStays * ends_here) / nodes + kStays * rank;
  }
  return ranks;
}

pif::Status work(pif::tool::Worker& worker) {
  PIF_TRY_VALUE(const Wish wish, worker.value_as<Wish>());
  PIF_TRY_VALUE(pif::tool::Input* const in, worker.input(0));
  PIF_TRY_VALUE(pif::tool::Team team, pif::tool::Team::join(worker));
  PIF_TRY_VALUE(const Links links, read_links(worker, *in));
  PIF_TRY_VALUE(const auto ranks, rank_nodes(worker, team, links, wish.rounds));
  if (worker.rank() > 0) return {};  // all have the same
  std::vector<std::uint64_t> order(ranks.size());
  std::iota(order.begin(), order.end(), 0);
  const auto shown = static_cast<std::ptrdiff_t>(std::min<std::size_t>(wish.shown, order.size()));
  std::partial_sort(order.begin(), order.begin() + shown, order.end(), [&](std::uint64_t a, std::uint64_t b) {
    return ranks[a] != ranks[b] ? ranks[a] > ranks[b] : a < b;
  });
  Ranked best;
  for (std::ptrdiff_t i = 0; i < shown; ++i) {
    const std::uint64_t node = order[static_cast<std::size_t>(i)];
    best.nodes.push_back({node, ranks[node]});
  }
  worker.set_result_as(best);
  return {};
}

pif::Result<pif::tool::ExitCode> control(pif::tool::Controller& controller, const std::string& typed,
                                         const Wish& wish) {
  PIF_TRY_VALUE(const std::string source, pif::tool::pif_path(typed));
  PIF_TRY_VALUE(const std::size_t in, controller.open(source));
  if (controller.input(in).format() != pif::Format::fixed(2 * sizeof(std::uint32_t)))
    return pif::fail(pif::Code::kInvalid, source + ": its records are no pairs of 32-bit numbers (8 bytes each)");
  PIF_TRY_VALUE(auto results, controller.run({.value = pif::tool::pack_head(wish)}));
  results.resize(1);
  PIF_TRY_VALUE(const auto best, pif::tool::results_as<Ranked>(results));
  std::string text;
  for (const Node& node : best.front().nodes)
    text += std::to_string(node.number) + '\t' + std::to_string(node.rank) + '\n';
  if (!controller.report().is_json) PIF_TRY(pif::tool::print(text));
  return pif::tool::ExitCode::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  const auto source = std::make_shared<std::string>();
  const auto wish = std::make_shared<Wish>();
  pif::tool::Tool tool;
  tool.name = "pagerank";
  tool.summary = "Prints the nodes of a graph that matter most.";
  tool.examples = "  pagerank /links            records of 8 bytes: from, to\n";
  tool.prints = true;
  tool.options = [source, wish](CLI::App& app) {
    app.add_option("--rounds", wish->rounds, "how often ranks are handed on")->check(CLI::Range(1u, 1000u));
    app.add_option("--show", wish->shown, "so many nodes");
    app.add_option("SRC", *source, "the file to read")->required();
  };
  tool.control = [source, wish](pif::tool::Controller& controller) { return control(controller, *source, *wish); };
  tool.work = work;
  return pif::tool::main(argc, argv, tool);
}
