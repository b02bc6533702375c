// group-by SRC: how often each value of a field occurs, and a histogram of that. Every worker counts its own component,
// then sends each value's count to the worker that the value belongs to: workers that talk, in words of their own.
#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <tuple>
#include <unordered_map>

#include <CLI/CLI.hpp>

#include "pif/tool/channel.h"
#include "pif/tool/team.h"
#include "pif/tool/tool_main.h"

namespace {

constexpr std::size_t kBodyBytes = 256 << 10;    // of a word: many values, never one each
constexpr std::size_t kShown = 20;               // values, the most frequent ones
constexpr std::size_t kValueBytes = 200;         // of what is shown of one
constexpr std::uint64_t kQueuedBytes = 8 << 20;  // that wait for others to take them, before more are counted

using Counts = std::unordered_map<std::string, std::uint64_t>;
using Histogram = std::array<std::uint64_t, 64>;  // [i]: values that occur 2^i times or more, and less than 2^(i+1)

std::string_view field_of(std::string_view record, unsigned field) {
  for (;; --field) {
    const auto begin = std::min(record.find_first_not_of(" \t\r\n"), record.size());
    const auto end = std::min(record.find_first_of(" \t\r\n", begin), record.size());
    if (field == 1 || begin == end) return record.substr(begin, end - begin);
    record = record.substr(end);
  }
}

pif::Result<Counts> count_here(pif::tool::Worker& worker, pif::tool::Input& in, unsigned field) {
  Counts counts;
  for (pif::tool::RowBatch batch; in.is_here();) {
    PIF_TRY_VALUE(const bool more, in.next(batch));
    if (!more) break;
    batch.for_each([&](auto record) {
      ++counts[std::string(field_of({reinterpret_cast<const char*>(record.data()), record.size()}, field))];
    });
    worker.progress(in.bytes_read(), in.bytes());
  }
  return counts;
}

// "3 word\n" for a value that occurs three times.
struct Part {
  bool is_last = false;  // of its sender's
  static auto members(auto& self) { return std::tie(self.is_last); }
};
using Channel = pif::tool::Channel<Part>;

// What another process says is checked.
pif::Status add(const pif::net::Buffer& body, Counts& to) {
  const auto bytes = body.span();
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::uint64_t count = 0;
  for (std::string value; lines >> count && lines.get() == ' ' && std::getline(lines, value);) to[value] += count;
  return lines.eof() ? pif::Status() : pif::fail(pif::Code::kInvalid, "counts that cannot be read");
}

// Each value's count goes to one worker; returns when all of this worker's values have come.
pif::Result<Counts> exchange(pif::tool::Worker& worker, const Counts& here) {
  PIF_TRY_VALUE(pif::tool::Team team, pif::tool::Team::join(worker));
  pif::tool::Talk talk(team);
  Counts mine;
  std::uint32_t ended = 0;
  Channel channel(talk, 1, {}, [&](const Channel::Item& item) {
    ended += item.head.is_last ? 1 : 0;
    return add(item.body, mine);
  });
  std::vector<std::string> bodies(worker.width());
  const auto send = [&](std::uint32_t rank, bool is_last) {
    const std::string body = std::exchange(bodies[rank], {});
    return channel.send(rank, {is_last}, pif::net::Buffer::copy_of(std::as_bytes(std::span(body))));
  };
  for (const auto& [value, count] : here) {
    const auto rank = static_cast<std::uint32_t>(std::hash<std::string>()(value) % bodies.size());
    bodies[rank] += std::to_string(count) + ' ' + value + '\n';
    if (bodies[rank].size() < kBodyBytes) continue;
    PIF_TRY(send(rank, false));
    PIF_TRY(talk.until([&] { return channel.queued_bytes() < kQueuedBytes; }));
  }
  for (std::uint32_t rank = 0; rank < bodies.size(); ++rank) PIF_TRY(send(rank, true));
  PIF_TRY(talk.until([&] { return ended == worker.width(); }));
  PIF_TRY(talk.end());
  return mine;
}

// The histogram's 64 numbers, then the most frequent values.
std::string result_of(const Counts& counts) {
  Histogram histogram{};
  std::vector<std::pair<std::uint64_t, std::string>> most;
  for (const auto& [value, count] : counts) {
    ++histogram[static_cast<std::size_t>(std::bit_width(count) - 1)];
    most.emplace_back(count, value.substr(0, kValueBytes));
  }
  std::sort(most.begin(), most.end(), std::greater<>());
  std::ostringstream out;
  for (const auto number : histogram) out << number << ' ';
  for (std::size_t i = 0; i < std::min(kShown, most.size()); ++i) out << '\n' << most[i].first << ' ' << most[i].second;
  return out.str();
}

pif::Status work(pif::tool::Worker& worker) {
  PIF_TRY_VALUE(pif::tool::Input* const in, worker.input(0));
  unsigned field = 0;
  if (!(std::istringstream(std::string(worker.value())) >> field) || field == 0)
    return pif::fail(pif::Code::kInternal, "the job's value cannot be read");
  PIF_TRY_VALUE(const Counts here, count_here(worker, *in, field));
  PIF_TRY_VALUE(const Counts mine, exchange(worker, here));
  worker.set_result(result_of(mine));
  return {};
}

struct Found {
  Histogram histogram{};
  std::vector<std::pair<std::uint64_t, std::string>> most;
};

pif::Status take_result(const std::string& result, Found& found) {
  std::istringstream in(result);
  for (auto& total : found.histogram) {
    std::uint64_t number = 0;
    if (!(in >> number)) return pif::fail(pif::Code::kInternal, "a worker's result cannot be read");
    total += number;
  }
  std::uint64_t count = 0;
  for (std::string value; in >> count && in.get() == ' ' && std::getline(in, value);)
    found.most.emplace_back(count, value);
  return {};
}

void print(const Found& found) {
  for (const auto& [count, value] : found.most) std::cout << count << '\t' << value << '\n';
  std::cout << "\ntimes\tvalues\n";
  for (std::size_t i = 0; i < found.histogram.size(); ++i) {
    const auto number = found.histogram[i];
    if (number > 0)
      std::cout << (std::uint64_t{1} << i) << "+\t" << number << '\t' << std::string(std::bit_width(number), '#')
                << '\n';
  }
  std::cout.flush();
}

pif::Result<pif::tool::ExitCode> control(pif::tool::Controller& controller, const std::string& name, unsigned field) {
  PIF_TRY_VALUE(const std::string source, pif::tool::pif_path(name));
  PIF_TRY(controller.open(source));
  PIF_TRY_VALUE(const auto results, controller.run({.value = std::to_string(field)}));
  Found found;
  for (const std::string& result : results) PIF_TRY(take_result(result, found));
  std::sort(found.most.begin(), found.most.end(), std::greater<>());
  found.most.resize(std::min(found.most.size(), kShown));
  std::uint64_t values = 0;
  for (const auto number : found.histogram) values += number;
  controller.report().add_result("values", values);
  if (!controller.report().is_json) print(found);
  return pif::tool::ExitCode::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  struct Options {
    std::string source;
    unsigned field = 1;
  };
  const auto options = std::make_shared<Options>();
  pif::tool::Tool tool;
  tool.name = "group-by";
  tool.summary = "Says how often each value of a field occurs: the twenty most frequent ones, and a histogram of all.";
  tool.examples = "  group-by /log              by the first field\n  group-by --field 9 /log    by the ninth\n";
  tool.options = [options](CLI::App& app) {
    app.add_option("-f,--field", options->field, "which field, counted from 1; blanks stand between fields")
        ->check(CLI::Range(1, 1000));
    app.add_option("SRC", options->source, "the file to read")->required();
  };
  tool.control = [options](pif::tool::Controller& controller) {
    return control(controller, options->source, options->field);
  };
  tool.work = work;
  return pif::tool::main(argc, argv, tool);
}
