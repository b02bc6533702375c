#include "overwrite/published_rows.h"

#include <memory>

#include <fmt/format.h>

#include "parity/length_request.h"
#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr Duration kPatience = std::chrono::seconds(5);

}  // namespace

std::uint64_t PublishedRows::known(const Component& component) {
  return component.layout.rows(component.state.shape().index(), component.state.published().records());
}

void PublishedRows::ask(const Component& component, Told told) {
  PIF_ASSERT(!is_known_here(component) && component.shape.form == 0, component.file.value);
  auto granted = peers_.grant(component.state.shape(), component.state.epoch());
  if (!granted) return told(fail(std::move(granted.error())));
  const std::shared_ptr<access::Grant> grant = std::move(*granted);
  auto length = std::make_shared<FileLength>();
  auto request = length_request({0, component.file.value}, component.shape.format, [length](const LengthTold& answer) {
    *length = answer.length;
    return Status();
  });
  request.timeout = kPatience;
  peers_.run(
      *grant, [&request](access::Requests& requests) { requests.add(std::move(request)); },
      [this, grant, length, layout = component.layout, index = component.state.shape().index(), file = component.file,
       told = std::move(told)](const Status& status) {
        if (status) return told(layout.rows(index, length->records));
        const Error& why = status.error();
        told(fail(access::is_lost(why.code) ? Code::kRetry : why.code,
                  fmt::format("{} asks {} whether rows of file {} are published, before it changes them: {}",
                              context_.config.name, why.node, name_of(file), why.text)));
      });
}

}  // namespace pif::lfs
