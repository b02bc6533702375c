#include "messages.h"

#include <fmt/format.h>

namespace pif::transpose {
namespace {

constexpr const char* kController = "the controller";
constexpr double kSecondsMax = 1e9;  // a transpose takes less: what is beyond would fit no Duration

bool is_time(double seconds) { return seconds >= 0 && seconds <= kSecondsMax; }

}  // namespace

std::string pack(const JobSpec& spec) {
  message::JobSpec out;
  out.set_element_bits(spec.shape.element.bits);
  out.set_least_bit_first(spec.shape.element.order == matrix::BitOrder::kLsb);
  out.set_first_row(spec.shape.rows.begin);
  out.set_end_row(spec.shape.rows.end);
  out.set_first_column(spec.shape.columns.begin);
  out.set_end_column(spec.shape.columns.end);
  out.set_algorithm(static_cast<message::Algorithm>(spec.algorithm));
  out.set_memory(spec.memory);
  return out.SerializeAsString();
}

Result<JobSpec> unpack_job_spec(std::string_view bytes, std::uint64_t records, std::uint32_t record_length) {
  PIF_TRY_VALUE(const auto from, tool::parse_message<message::JobSpec>(bytes, kController));
  if (!matrix::Element::is_width(from.element_bits()))
    return tool::sent_nonsense(kController, fmt::format("elements of {} bits", from.element_bits()));
  if (!message::Algorithm_IsValid(from.algorithm()))
    return tool::sent_nonsense(kController, fmt::format("algorithm {}", static_cast<int>(from.algorithm())));
  const std::uint64_t columns = std::uint64_t{record_length} * 8 / from.element_bits();
  const bool fits = from.first_row() < from.end_row() && from.end_row() <= records &&
                    from.first_column() < from.end_column() && from.end_column() <= columns;
  if (!fits) {
    return tool::sent_nonsense(kController,
                               fmt::format("rows {}:{} and columns {}:{} of a matrix of {} by {}", from.first_row(),
                                           from.end_row(), from.first_column(), from.end_column(), records, columns));
  }
  JobSpec spec;
  spec.shape.element = {from.element_bits(), from.least_bit_first() ? matrix::BitOrder::kLsb : matrix::BitOrder::kMsb};
  spec.shape.rows = {from.first_row(), from.end_row()};
  spec.shape.columns = {from.first_column(), from.end_column()};
  spec.algorithm = static_cast<Algorithm>(from.algorithm());
  spec.memory = from.memory();
  return spec;
}

std::string pack(const Outcome& outcome) {
  message::Outcome out;
  for (const auto& [name, seconds] : outcome.phases) {
    message::Outcome::Phase& phase = *out.add_phases();
    phase.set_name(name);
    phase.set_seconds(seconds);
  }
  return out.SerializeAsString();
}

Result<Outcome> unpack_outcome(std::string_view bytes, std::uint32_t rank) {
  PIF_TRY_VALUE(const auto from, tool::parse_message<message::Outcome>(bytes, rank));
  Outcome outcome;
  for (const auto& phase : from.phases()) {
    if (!is_time(phase.seconds()))
      return tool::sent_nonsense(rank, fmt::format("a part of the work took it {} s", phase.seconds()));
    outcome.phases.emplace_back(phase.name(), phase.seconds());
  }
  return outcome;
}

}  // namespace pif::transpose
