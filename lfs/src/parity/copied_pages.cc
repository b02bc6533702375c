#include "parity/copied_pages.h"

#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kStepBytes = 64u << 20;  // the executor has a thread for so long

component::ParityShape shape_for(const Keeper& keeper, FileId file) {
  component::ParityShape shape = keeper.shape;
  shape.file = file;
  return shape;
}

// He must show for the source what every reader of it shows.
Result<Capability> right_to_read(const LfsContext& context, const Request& request) {
  const std::int64_t now = context.world.messenger.clock().wall_seconds();
  PIF_TRY_VALUE(const Capability capability,
                verify_capability(context.config.key, request.envelope().gather().copied_from(), now));
  if (!request.who.uid) return fail(Code::kPermission, "the requester is unknown");
  PIF_TRY(require(capability, capability.file, kMayRead, *request.who.uid));
  return capability;
}

Result<ComponentPtr> source_of(LfsContext& context, const Request& request) {
  PIF_TRY_VALUE(const Capability capability, right_to_read(context, request));
  const auto& shape = request.envelope().gather().shape();
  PIF_TRY(context.check_not_lost(capability.file));
  PIF_TRY_VALUE(const ComponentPtr source, context.components.find(capability.file));
  PIF_TRY(context.check_epoch(*source, capability));
  if (shape.file() == capability.file.value || !keeps_parity(source->state.shape()) ||
      !is_same_shape(source->state.shape(), shape))
    return fail(Code::kInvalid, fmt::format("file {} is laid out otherwise", name_of(source->file)));
  if (source->lock.is_held(Mode::kRestore) || !source->is_whole())
    return fail(Code::kRetry, fmt::format("file {} is not complete here at the moment", name_of(source->file)));
  return source;
}

}  // namespace

Result<std::unique_ptr<CopiedPages>> CopiedPages::make(LfsContext& context, const Request& request,
                                                       const Keeper& keeper, std::uint64_t pages,
                                                       std::shared_ptr<component::ParityFiles> files) {
  PIF_TRY_VALUE(const ComponentPtr source, source_of(context, request));
  // Those of published rows, which never change. What is appended to the source meanwhile lies behind them.
  const std::uint64_t count = std::min<std::uint64_t>(pages, source->state.pages());
  PIF_TRY_VALUE(auto from, component::open_parity(context.world.storage, context.components.stem(source->file),
                                                  component::OpenMode::kRead));
  return std::make_unique<CopiedPages>(keeper, source->file, std::move(from), count, std::move(files));
}

CopiedPages::CopiedPages(const Keeper& keeper, FileId source, component::ParityFiles from, std::uint64_t pages,
                         std::shared_ptr<component::ParityFiles> to)
    : target_(keeper.shape.file),
      shape_(shape_for(keeper, source)),
      from_(std::move(from)),
      to_(std::move(to)),
      copy_(shape_, from_, target_, *to_, pages) {}

// Whatever keeps it from going on: the pages behind are made out of rows, which says what is wrong if that fails, too.
std::uint64_t CopiedPages::run(Works& works) {
  Result<bool> goes_on = true;
  while (goes_on && *goes_on) goes_on = works.run<&component::PageCopy::step>(copy_, kStepBytes);
  const Status finished = works.run<&component::PageCopy::finish>(copy_);
  const Status copied = goes_on ? finished : Status(fail(goes_on.error()));
  if (!copied) {
    spdlog::warn("file {}: its pages are not copied from file {}: {}", name_of(target_), name_of(shape_.file),
                 copied.error().text);
    return 0;
  }
  if (!copy_.damage().empty())
    spdlog::warn("file {}: pages behind the first {} are not copied, but made anew: {}", name_of(target_),
                 copy_.pages(), copy_.damage());
  return copy_.pages();
}

}  // namespace pif::lfs
