// The controller's part: adds up what workers answer, by rank, and shows it.
#include "summarize.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "distinct.h"
#include "groups.h"
#include "pif/base/packed.h"
#include "pif/base/print.h"
#include "pif/tool/csv.h"
#include "pif/tool/head.h"
#include "select.h"

namespace pif::summarize {
namespace {

using Numbers = std::vector<std::uint64_t>;

struct Field {
  std::string name;
  Moments moments;
  std::uint64_t others = 0, missing = 0, distinct = 0;
  Distinct registers;
  Numbers quantiles, bins;
  Groups values{0};
};

tl::unexpected<Error> unreadable() { return fail(Code::kInternal, "a worker's answer cannot be read"); }

Result<Numbers> unpack(std::string_view bytes, std::size_t count) {
  const auto all = PackedNumbers<std::uint64_t>::all_of(std::as_bytes(std::span(bytes)), count);
  if (!all) return unreadable();
  Numbers numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back((*all)[i]);
  return numbers;
}

class Show {
 public:
  Show(tool::Controller& controller, const SummarizeOptions& options) : controller_(controller), options_(options) {
    for (const std::string& name : options.fields) fields_.emplace_back().name = name;
  }

  Status add(const Answer& answer, bool is_first) {
    PIF_TRY(add_moments(answer));
    if (is_first) PIF_TRY(take_common(answer));
    if (!answer.distinct.empty()) PIF_TRY(add_values(answer));
    return answer.groups.empty() ? Status() : groups_.add_packed(answer.groups);
  }

  Status show() {
    if (!options_.by.empty()) return show_groups();
    std::vector<std::vector<std::string>> columns{
        {"field", "numbers", "others", "missing", "different", "min", "max", "sum", "mean", "deviation"}};
    for (const double q : options_.quantiles) columns[0].push_back(fmt::format("{}%", q * 100));
    for (Field& field : fields_) columns.push_back(column_of(field));
    if (controller_.report().is_json) return {};
    PIF_TRY(tool::print(table(columns)));
    for (const Field& field : fields_) PIF_TRY(tool::print(histogram(field) + most(field)));
    return {};
  }

 private:
  Status add_moments(const Answer& answer) {
    PIF_TRY_VALUE(const Numbers numbers, unpack(answer.moments, fields_.size() * kColumnNumbers));
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const auto own = std::span(numbers).subspan(i * kColumnNumbers, kColumnNumbers);
      fields_[i].moments.add(Moments::of(own.first<Moments::kNumbers>()));
      fields_[i].others += own[Moments::kNumbers];
      fields_[i].missing += own[Moments::kNumbers + 1];
      const auto registers =
          std::string_view(answer.registers).substr(std::min(i * Distinct::kRegisters, answer.registers.size()));
      if (!fields_[i].registers.add(registers.substr(0, Distinct::kRegisters))) return unreadable();
    }
    return {};
  }

  Status take_common(const Answer& answer) {
    const std::size_t q = options_.quantiles.size(), bins = options_.query.bins;
    if (q + bins == 0 || !options_.by.empty()) return {};
    PIF_TRY_VALUE(const Numbers quantiles, unpack(answer.quantiles, fields_.size() * q));
    PIF_TRY_VALUE(const Numbers counts, unpack(answer.bins, fields_.size() * bins));
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      const auto of = [&](const Numbers& all, std::size_t n) {
        const auto count = static_cast<std::ptrdiff_t>(n);
        return Numbers(all.begin() + at * count, all.begin() + (at + 1) * count);
      };
      fields_[i].quantiles = of(quantiles, q);
      fields_[i].bins = of(counts, bins);
    }
    return {};
  }

  Status add_values(const Answer& answer) {
    PIF_TRY_VALUE(const Numbers distinct, unpack(answer.distinct, fields_.size()));
    auto rest = std::as_bytes(std::span(answer.tops));
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      fields_[i].distinct += distinct[i];
      std::string top;
      if (!tool::take_member(rest, top)) return unreadable();
      PIF_TRY(fields_[i].values.add_packed(top));
    }
    return {};
  }

  // ---- text ----

  bool is_exact() const { return options_.query.exact || options_.query.top > 0; }

  std::vector<std::string> column_of(Field& field) {
    if (!is_exact()) field.distinct = field.registers.estimate();
    std::vector<std::string> cells{field.name};
    tool::Report& report = controller_.report();
    const auto add = [&](const std::string& name, tool::Report::Value value, const std::string& text) {
      report.add_result(field.name + "." + name, std::move(value));
      cells.push_back(text);
    };
    const auto add_count = [&](const std::string& name, std::uint64_t n) { add(name, n, std::to_string(n)); };
    const auto add_number = [&](const std::string& name, double x) {
      if (field.moments.count() == 0) return cells.push_back("-");
      add(name, x, fmt::format("{}", x));
    };
    add_count("numbers", field.moments.count());
    add_count("others", field.others);
    add_count("missing", field.missing);
    add("different", field.distinct, (is_exact() ? "" : "about ") + std::to_string(field.distinct));
    add_number("min", field.moments.min());
    add_number("max", field.moments.max());
    add_number("sum", field.moments.sum());
    add_number("mean", field.moments.mean());
    add_number("deviation", field.moments.deviation());
    for (std::size_t i = 0; i < field.quantiles.size(); ++i)
      add_number(fmt::format("{}%", options_.quantiles[i] * 100), from_sortable(field.quantiles[i]));
    return cells;
  }

  static std::string table(const std::vector<std::vector<std::string>>& columns) {
    std::string text;
    std::vector<std::size_t> widths;
    for (const auto& column : columns) {
      const auto is_shorter = [](const auto& a, const auto& b) { return a.size() < b.size(); };
      widths.push_back(std::max_element(column.begin(), column.end(), is_shorter)->size());
    }
    for (std::size_t row = 0; row < columns[0].size(); ++row) {
      text += fmt::format("{:<{}}", columns[0][row], widths[0]);
      for (std::size_t i = 1; i < columns.size(); ++i) text += fmt::format("  {:>{}}", columns[i][row], widths[i]);
      text += '\n';
    }
    return text;
  }

  std::string histogram(const Field& field) const {
    if (field.bins.empty() || field.moments.count() == 0) return "";
    const std::uint64_t largest = *std::max_element(field.bins.begin(), field.bins.end());
    const double low = field.moments.min(), high = field.moments.max(), bins = static_cast<double>(field.bins.size());
    std::string text = fmt::format("\nfield {} from  numbers\n", field.name);
    for (std::size_t i = 0; i < field.bins.size(); ++i) {
      const double part = static_cast<double>(i) / bins;
      const auto length =
          static_cast<std::size_t>(40 * static_cast<double>(field.bins[i]) / static_cast<double>(largest));
      text += fmt::format("{:>12.6g}  {:>10}  {}\n", low * (1 - part) + high * part, field.bins[i],
                          std::string(length, '#'));
    }
    return text;
  }

  std::string most(const Field& field) const {
    if (options_.query.top == 0) return "";
    std::string text = fmt::format("\nrecords  field {}\n", field.name);
    for (const auto& [count, value] : field.values.most_frequent(options_.query.top))
      text += fmt::format("{:>7}  {}\n", count, value);
    return text;
  }

  Status show_groups() {
    const std::map<std::string, Group> sorted(groups_.all().begin(), groups_.all().end());
    controller_.report().add_result("groups", std::uint64_t{sorted.size()});
    if (controller_.report().is_json) return {};
    std::string text = options_.by + "\trecords";
    for (const Field& field : fields_)
      text += fmt::format("\t{0}.numbers\t{0}.min\t{0}.max\t{0}.sum\t{0}.mean\t{0}.deviation", field.name);
    text += '\n';
    for (const auto& [key, group] : sorted) {
      text += fmt::format("{}\t{}", key, group.count);
      for (const Moments& m : group.fields) {
        text += m.count() == 0 ? std::string("\t0\t-\t-\t-\t-\t-")
                               : fmt::format("\t{}\t{}\t{}\t{}\t{}\t{}", m.count(), m.min(), m.max(), m.sum(), m.mean(),
                                             m.deviation());
      }
      text += '\n';
    }
    return tool::print(text);
  }

  tool::Controller& controller_;
  const SummarizeOptions& options_;
  std::vector<Field> fields_;
  Groups groups_{options_.fields.size()};
};

// A column's name becomes its number; a field of bytes must be in a record of one length.
Result<std::string> resolve(const File& file, const SummarizeOptions& options, const std::string& field) {
  const auto attributes = file.attributes();
  if (const auto header = attributes.find("header"); options.query.csv && header != attributes.end())
    if (const auto column = tool::csv_column(header->second, field, options.query.syntax().separator))
      return std::to_string(*column + 1);
  PIF_TRY_VALUE(const FieldSpec spec, parse_field(field));
  if (spec.length == 0) return field;
  if (!file.format().is_fixed()) return fail(Code::kInvalid, fmt::format("'{}' is for records of one length", field));
  if (std::uint64_t{spec.offset} + spec.length <= file.format().record_length) return field;
  return fail(Code::kInvalid,
              fmt::format("'{}' ends beyond the records' {} bytes", field, file.format().record_length));
}

// Opens the file, and makes the query ready to travel.
Status prepare(tool::Controller& controller, SummarizeOptions& options) {
  PIF_TRY_VALUE(const std::string path, tool::pif_path(options.path));
  PIF_TRY_VALUE(const std::size_t input, controller.open(path));
  const File& file = controller.input(input);
  for (const std::string& field : options.fields) {
    PIF_TRY_VALUE(const std::string resolved, resolve(file, options, field));
    options.query.fields += resolved + '\n';
  }
  if (!options.by.empty()) {
    PIF_TRY_VALUE(options.query.by, resolve(file, options, options.by));
    options.quantiles.clear();  // groups have only what can be added up
  }
  for (const double q : options.quantiles) options.query.quantiles += fmt::format("{} ", q);
  return {};
}

}  // namespace

Result<tool::ExitCode> control(tool::Controller& controller, SummarizeOptions& options) {
  PIF_TRY(prepare(controller, options));
  PIF_TRY_VALUE(const auto results, controller.run({.value = tool::pack_head(options.query)}));
  Show show(controller, options);
  PIF_TRY_VALUE(const auto answers, tool::results_as<Answer>(results));
  for (const Answer& answer : answers) PIF_TRY(show.add(answer, &answer == &answers.front()));
  PIF_TRY(show.show());
  return tool::ExitCode::kDone;
}

Result<tool::Plan> explain(tool::Controller& controller, SummarizeOptions& options) {
  PIF_TRY(prepare(controller, options));
  const File& file = controller.input(0);
  const std::uint64_t width = file.layout().width();
  tool::Plan plan;
  plan.emplace_back("reads", fmt::format("{} bytes, on {} LFSs at once", file.file_length_seen().bytes, width));
  const bool counts = options.query.top > 0 || options.query.exact || !options.by.empty();
  const std::uint64_t bytes = options.fields.size() * (Distinct::kRegisters + options.quantiles.size() * (16u << 10));
  plan.emplace_back(
      "moved", counts ? "each different text once from each LFS" : fmt::format("about {} bytes from each LFS", bytes));
  return plan;
}

}  // namespace pif::summarize
