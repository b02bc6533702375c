// A tool whose workers write on their outputs, die, or read very many inputs: own_tools_test.py runs it.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "pif/tool/numbering.h"
#include "pif/tool/reduce.h"
#include "pif/tool/tool_main.h"

namespace {

using namespace pif;

struct Options {
  std::string mode;
  std::string folder;
  std::uint64_t count = 1;  // files of the folder, called 0, 1, ...
  unsigned jobs = 1;
};

void write_much() {
  const std::string line(99, 'x');
  for (int i = 0; i < 100'000; ++i) std::puts(line.c_str());
}

// Each input is given back before the next one is taken.
Status read_all(tool::Worker& worker) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < worker.input_count(); ++i) {
    PIF_TRY_VALUE(tool::Input* const input, worker.input(i));
    for (tool::RowBatch batch;;) {
      PIF_TRY_VALUE(const bool more, input->next(batch));
      if (!more) break;
      bytes += batch.data.size();
    }
    worker.close_input(i);
  }
  worker.set_result(std::to_string(bytes));
  return {};
}

// All records but every third vanish; the sum of the new numbers is the result.
Status number_all(tool::Worker& worker) {
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  tool::Numbering numbering(worker, team, *input);
  std::uint64_t sum = 0;
  std::vector<std::uint32_t> counts;
  while (!numbering.is_over()) {
    const Range rows = numbering.rows();
    counts.clear();
    for (Row row = rows.begin; row < rows.end; ++row)
      counts.push_back(input->layout().record_at({input->index(), row}) % 3 == 0 ? 1 : 0);
    PIF_TRY_VALUE(const auto numbers, numbering.next(counts));
    for (std::size_t i = 0; i < counts.size(); ++i) sum += counts[i] * numbers[i];
  }
  worker.set_result(std::to_string(sum));
  return {};
}

// 40 rounds of an all-reduce of a million doubles.
Status reduce_much(tool::Worker& worker) {
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  std::vector<double> numbers(1'000'000, 1.0);
  for (int round = 0; round < 40; ++round) {
    worker.begin_phase(fmt::format("round {}", round));
    PIF_TRY_VALUE(numbers, tool::all_reduce(team, worker, std::span<const double>(numbers), std::plus<>()));
    for (double& number : numbers) number /= worker.width();
  }
  worker.set_result(numbers.front() == 1.0 ? "1" : "0");
  return {};
}

Status work(tool::Worker& worker) {
  const std::string_view mode = worker.value();
  if (mode == "read") return read_all(worker);
  if (mode == "number") return number_all(worker);
  if (mode == "reduce") return reduce_much(worker);
  std::printf("out of %u\n", worker.rank());
  std::fprintf(stderr, "err of %u \x1b[31m\n", worker.rank());
  std::cout << "no end of " << worker.rank() << std::flush;
  if (mode == "flood" && worker.rank() == 1) write_much();
  if (mode == "fail" && worker.rank() == 1) return fail(Code::kIo, "as it was told");
  if (mode == "die" && worker.rank() == 1) {
    std::fputs("\nbefore the end\nthe last words\n", stderr);
    ::raise(SIGABRT);
  }
  return {};
}

Result<tool::ExitCode> control(tool::Controller& controller, const Options& options) {
  std::uint64_t sum = 0;
  for (unsigned job = 0; job < options.jobs; ++job) {
    for (std::uint64_t i = 0; i < options.count && !options.folder.empty(); ++i)
      PIF_TRY(controller.open(fmt::format("{}/{}", options.folder, i)));
    PIF_TRY_VALUE(const auto results, controller.run({.value = options.mode}));
    for (const auto& result : results) sum += std::strtoull(result.c_str(), nullptr, 10);
    controller.close_inputs();
  }
  PIF_TRY(tool::print(fmt::format("{}\n", sum)));
  return tool::ExitCode::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = std::make_shared<Options>();
  tool::Tool tool;
  tool.name = "talkative";
  tool.options = [options](CLI::App& app) {
    app.add_option("MODE", options->mode)->required();
    app.add_option("FOLDER", options->folder);
    app.add_option("--count", options->count);
    app.add_option("--jobs", options->jobs);
  };
  tool.control = [options](tool::Controller& controller) { return control(controller, *options); };
  tool.work = work;
  return tool::main(argc, argv, tool);
}
