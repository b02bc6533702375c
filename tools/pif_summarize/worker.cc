// The worker's part: one pass over its records, then what takes the others.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <xxhash.h>

#include "distinct.h"
#include "groups.h"
#include "pif/base/packed.h"
#include "pif/tool/head.h"
#include "pif/tool/scratch.h"
#include "pif/tool/team.h"
#include "reader.h"
#include "select.h"

namespace pif::summarize {
namespace {

// What is known of one field of this worker's records.
struct Column {
  explicit Column(FieldReader field) : reader(std::move(field)) {}

  FieldReader reader;
  Moments moments;
  std::uint64_t others = 0, missing = 0;
  Distinct distinct;
  Groups values{0};       // if they are counted
  tool::Scratch numbers;  // sortable ones, if they are looked at again

  std::span<const std::uint64_t> sortable_numbers() const {
    return {reinterpret_cast<const std::uint64_t*>(numbers.bytes().data()), numbers.bytes().size() / 8};
  }
};

class Summary {
 public:
  Summary(tool::Worker& worker, const Query& query, tool::Input& input)
      : worker_(worker), query_(query), input_(input) {}

  Status run() {
    PIF_TRY(prepare());
    PIF_TRY(read());
    PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker_));
    PIF_TRY_VALUE(const std::vector<Moments> all, gather_moments(team));
    if (keeps_numbers()) PIF_TRY(look_again(team, all));
    if (counts_values()) PIF_TRY(count_values(team));
    if (key_) {
      PIF_TRY(groups_->exchange(worker_, team));
      answer_.groups = groups_->pack();
    }
    worker_.set_result_as(answer_);
    return {};
  }

 private:
  bool keeps_numbers() const { return !query_.quantiles.empty() || query_.bins > 0; }
  bool counts_values() const { return query_.top > 0 || query_.exact; }

  Status prepare() {
    const tool::FieldSyntax syntax = query_.syntax();
    for (const std::string& text : words_of(query_.fields, '\n')) {
      PIF_TRY_VALUE(FieldSpec spec, parse_field(text));
      Column& column = columns_.emplace_back(FieldReader(std::move(spec), syntax));
      if (!keeps_numbers()) continue;
      PIF_TRY_VALUE(column.numbers, worker_.scratch());
    }
    if (query_.by.empty()) return {};
    PIF_TRY_VALUE(FieldSpec spec, parse_field(query_.by));
    key_.emplace(std::move(spec), syntax);
    groups_.emplace(columns_.size());
    return {};
  }

  // ---- one pass ----

  Status read() {
    tool::RowBatch batch;
    while (input_.is_here()) {
      PIF_TRY_VALUE(const bool more, input_.next(batch));
      if (!more) break;
      Status taken;
      row_ = batch.first;
      batch.for_each([&](std::span<const std::byte> record) {
        if (taken) taken = take(record);
        ++row_;
      });
      PIF_TRY(taken);
      worker_.progress(input_.bytes_read(), input_.bytes());
    }
    return {};
  }

  Status take(std::span<const std::byte> record) {
    Group* group = nullptr;
    if (key_) {
      PIF_TRY_VALUE(group, groups_->at(key_->text(record).value_or("")));
      ++group->count;
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto text = columns_[i].reader.text(record);
      if (!text) {
        ++columns_[i].missing;
        if (query_.strict) return no_number(columns_[i], "is not there");
        continue;
      }
      PIF_TRY(take_value(columns_[i], *text, group != nullptr ? &group->fields[i] : nullptr));
    }
    return {};
  }

  Status take_value(Column& column, std::string_view text, Moments* of_group) {
    if (counts_values()) {
      PIF_TRY_VALUE(Group* const value, column.values.at(text));
      ++value->count;
    } else if (!key_) {
      column.distinct.add(XXH3_64bits(text.data(), text.size()));
    }
    const auto number = column.reader.number(text);
    if (!number) {
      ++column.others;
      return query_.strict ? no_number(column, fmt::format("is no number: '{}'", text.substr(0, 100))) : Status();
    }
    if (of_group != nullptr)
      of_group->add(*number);
    else
      column.moments.add(*number);
    if (!keeps_numbers()) return {};
    const std::uint64_t bits = sortable(*number);
    return column.numbers.append(std::as_bytes(std::span(&bits, 1)));
  }

  tl::unexpected<Error> no_number(const Column& column, const std::string& what) const {
    return fail(Code::kUnsupported, fmt::format("field {} of record {} {}", column.reader.name(),
                                                input_.layout().record_at({input_.index(), row_}) + 1, what));
  }

  // ---- with the others ----

  // Those of all workers, added by rank.
  Result<std::vector<Moments>> gather_moments(tool::Team& team) {
    std::vector<std::uint64_t> own;
    for (const Column& column : columns_) {
      const auto numbers = column.moments.numbers();
      own.insert(own.end(), numbers.begin(), numbers.end());
      own.insert(own.end(), {column.others, column.missing});
      answer_.registers += column.distinct.registers();
    }
    answer_.moments = packed(std::span<const std::uint64_t>(own));
    PIF_TRY_VALUE(const auto gathered, team.all_gather_numbers(own));
    std::vector<Moments> all(columns_.size());
    for (const auto& numbers : gathered) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].add(Moments::of(std::span(numbers).subspan(i * kColumnNumbers).first<Moments::kNumbers>()));
      }
    }
    return all;
  }

  Status look_again(tool::Team& team, const std::vector<Moments>& all) {
    std::vector<double> fractions;
    for (const std::string& word : words_of(query_.quantiles, ' ')) fractions.push_back(std::stod(word));
    std::vector<std::uint64_t> quantiles, bins;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      PIF_TRY(columns_[i].numbers.map());
      std::vector<std::uint64_t> places;
      for (const double fraction : fractions) places.push_back(place_of(fraction, all[i].count()));
      if (all[i].count() == 0) places.clear();
      PIF_TRY_VALUE(auto found, select(team, columns_[i].sortable_numbers(), places));
      found.resize(fractions.size());
      quantiles.insert(quantiles.end(), found.begin(), found.end());
      if (query_.bins == 0) continue;
      PIF_TRY_VALUE(const auto counts, team.sum(histogram(columns_[i], all[i])));
      bins.insert(bins.end(), counts.begin(), counts.end());
    }
    answer_.quantiles = packed(std::span<const std::uint64_t>(quantiles));
    answer_.bins = packed(std::span<const std::uint64_t>(bins));
    return {};
  }

  // The smallest number that so many are not above.
  static std::uint64_t place_of(double fraction, std::uint64_t count) {
    const double behind = std::ceil(fraction * static_cast<double>(count));
    return behind < 1 ? 0 : std::min(static_cast<std::uint64_t>(behind), std::max<std::uint64_t>(count, 1)) - 1;
  }

  // Of equal width, from the smallest to the largest number.
  std::vector<std::uint64_t> histogram(const Column& column, const Moments& all) const {
    std::vector<std::uint64_t> bins(query_.bins);
    const double low = all.min(), width = (all.max() / query_.bins - low / query_.bins);
    for (const std::uint64_t bits : column.sortable_numbers()) {
      const double bin = width > 0 ? (from_sortable(bits) - low) / width : 0;
      ++bins[std::min(static_cast<std::size_t>(bin), bins.size() - 1)];
    }
    return bins;
  }

  Status count_values(tool::Team& team) {
    std::vector<std::uint64_t> distinct;
    for (Column& column : columns_) {
      PIF_TRY(column.values.exchange(worker_, team));
      distinct.push_back(column.values.all().size());
      PIF_TRY_VALUE(const std::string most, most_frequent(column.values));
      tool::pack_member(answer_.tops, most);
    }
    answer_.distinct = packed(std::span<const std::uint64_t>(distinct));
    return {};
  }

  Result<std::string> most_frequent(const Groups& values) const {
    Groups most(0);
    for (const auto& [count, value] : values.most_frequent(query_.top)) {
      PIF_TRY_VALUE(Group* const group, most.at(value));
      group->count = count;
    }
    return most.pack();
  }

  tool::Worker& worker_;
  const Query& query_;
  tool::Input& input_;
  std::vector<Column> columns_;
  std::optional<FieldReader> key_;
  std::optional<Groups> groups_;
  Row row_ = 0;
  Answer answer_;
};

}  // namespace

Status work(tool::Worker& worker) {
  PIF_TRY_VALUE(const Query query, worker.value_as<Query>());
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  return Summary(worker, query, *input).run();
}

}  // namespace pif::summarize
