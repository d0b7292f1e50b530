#include "apiserver/read/reader.h"

#include "apiserver/read/object_converter.h"
#include "apiserver/read/pinned_objects.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr Duration kVersionWait = seconds(3);
constexpr std::size_t kResumeBelow = ListJob::kAheadMax / 2;

api::Status too_large(store::Revision wanted, store::Revision present) {
  api::Status status = api::retry_status(
      ErrorCode::kTimeout,
      fmt::format("Too large resource version: {}, current: {}", wanted.number(), present.number()), 1);
  status.make_details().causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  return status;
}

/// Ends a list whose revision is gone. For one that has begun, the answer has a token that continues it at the present
/// state, as upstream. `start_after` empty: it has not.
void fail_expired(Exchange& exchange, const std::string& start_after) {
  if (start_after.empty()) {
    return exchange.fail(make_error(ErrorCode::kExpired, "The resourceVersion for the provided list is too old."));
  }
  const api::Status status = make_error(
      ErrorCode::kExpired,
      "The provided continue parameter is too old to display a consistent list result. You can start a new list "
      "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
      "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
      "modified, or deleted between the time the first chunk was returned and now may show up in the list.");
  api::Json document = api::to_json(status);
  document.make({"metadata", "continue"}) = encode_continue({.revision = std::nullopt, .start_after = start_after});
  exchange.answer(status.code, document);
}

/// Adds a warning about unreadable objects, which the list lacks.
void warn_of_unreadable(Exchange& exchange, const ResourceCache& cache, std::string_view prefix) {
  std::vector<std::string> keys;
  const auto& all = cache.unreadable();
  for (auto at = all.lower_bound(prefix); at != all.end() && at->first.starts_with(prefix); ++at) {
    if (keys.size() == kLeftOutReported) break;
    keys.push_back(cache.resource().storage + at->first);
  }
  if (!keys.empty()) exchange.warnings.push_back(left_out_warning(keys));
}

LongReads::Reader reader_of(const Exchange& exchange) {
  return {exchange.user().name, !exchange.takes_pieces() || exchange.whole_bytes_min() > ListJob::kAheadMax};
}

struct ListSize {
  std::size_t objects = 0;
  std::size_t bytes = 0;

  void add(std::size_t object_bytes) {
    ++objects;
    bytes += object_bytes;
  }

  bool is_long() const { return objects > kLongList || bytes > kLongListBytes; }
};

}  // namespace

void Reader::when_reached(const ExchangePtr& exchange, store::Revision revision, Ready ready) {
  const Origin& origin = origin_of(*exchange);
  if (revision <= origin.revision()) return ready();
  auto& waiting = waiting_[&origin];
  const auto entry = waiting.emplace(revision, Waiting{exchange, std::move(ready), {}});
  entry->second.timer = core_.timers.at(core_.now.mono + kVersionWait, [&origin, &waiting, entry] {
    const ExchangePtr late = entry->second.exchange;
    const store::Revision wanted = entry->first;
    waiting.erase(entry);
    late->fail(too_large(wanted, origin.revision()));
  });
}

void Reader::on_progress() {
  if (waiting_.empty()) return;
  for (const auto& origin : core_.cache.origins()) {
    const auto found = waiting_.find(origin.get());
    if (found == waiting_.end()) continue;
    auto& waiting = found->second;
    while (!waiting.empty() && waiting.begin()->first <= origin->revision()) {
      Waiting reached = std::move(waiting.begin()->second);
      waiting.erase(waiting.begin());
      core_.timers.cancel(reached.timer);
      if (!reached.exchange->finished()) reached.ready();
    }
  }
}

void Reader::get(const ExchangePtr& exchange) {
  const auto options = parse_list_options(exchange->target, false);
  if (!options) return exchange->fail(options.error());
  const Resource& resource = *exchange->route.resource;
  auto rendering = Rendering::of(resource, exchange->form, exchange->target);
  if (!rendering) return exchange->fail(rendering.error());
  when_reached(exchange, options->version.value_or(store::Revision(0)),
               [this, exchange, &resource, rendering = *std::move(rendering)] {
                 const Route& route = exchange->route;
                 const ObjectPtr object = core_.cache.of(resource).find(object_key(route.ns, route.name));
                 if (!object) return exchange->fail(api::not_found_status(resource.group_resource(), route.name));
                 if (!object->unknown_fields.empty()) {
                   exchange->warnings.push_back(unknown_fields_warning(object->unknown_fields));
                 }
                 show_object(exchange, rendering, object, 200);
               });
}

void Reader::show_object(const ExchangePtr& exchange, const Rendering& rendering, const ObjectPtr& object, int code) {
  const Resource& row = *exchange->route.resource;
  if (!needs_webhook(row, *object)) {
    return exchange->answer_object(code, rendering.object(*object, core_.now.wall), rendering.document(*object));
  }
  core_.converter->convert(row, {object}, ObjectConverter::Of::kObject,
                           [this, exchange, rendering, code](const Conversion& converted) {
                             show_converted_object(exchange, rendering, converted, code);
                           });
}

void Reader::show_converted_object(const ExchangePtr& exchange, const Rendering& rendering, const Conversion& converted,
                                   int code) const {
  if (exchange->finished()) return;
  if (!converted) return exchange->fail(converted.error());
  exchange->answer_object(code, rendering.object(*converted->front(), core_.now.wall));
}

void Reader::watch(const ExchangePtr& exchange) {
  const auto options = parse_list_options(exchange->target, true);
  if (!options) return exchange->fail(options.error());
  auto selection = parse_selection(exchange->route, exchange->target);
  if (!selection) return exchange->fail(selection.error());
  auto rendering = Rendering::of(*exchange->route.resource, exchange->form, exchange->target);
  if (!rendering) return exchange->fail(rendering.error());
  const bool waits = options->send_initial_events.value_or(false) && options->version;
  when_reached(exchange, waits ? *options->version : store::Revision(0),
               [this, exchange, options = *options, selection = *std::move(selection),
                rendering = *std::move(rendering)]() mutable {
                 hub_.open(exchange, std::move(rendering), std::move(selection), options);
               });
}

void Reader::list(const ExchangePtr& exchange) {
  const auto options = parse_list_options(exchange->target, false);
  if (!options) return exchange->fail(options.error());
  auto selection = parse_selection(exchange->route, exchange->target);
  if (!selection) return exchange->fail(selection.error());
  auto rendering = Rendering::of(*exchange->route.resource, exchange->form, exchange->target);
  if (!rendering) return exchange->fail(rendering.error());
  Page page{*std::move(rendering), *std::move(selection), options->limit, std::nullopt, {}, core_.now.wall};
  if (!options->continue_token.empty()) {
    const Result<ContinueToken> token = decode_continue(options->continue_token);
    if (!token) return exchange->fail(token.error());
    page.at = token->revision;
    page.start_after = token->start_after;
    page.began = token->began;
    const Origin& origin = origin_of(*exchange);
    const store::Revision at = token->revision.value_or(store::Revision(0));
    const bool is_unknown = at > origin.revision() && !origin.store().is_shared();
    const bool is_compacted = token->revision && at < origin.store().compacted();
    const bool is_old = token->began && token_life_ > Duration::zero() && *token->began + token_life_ < core_.now.wall;
    if (is_unknown || is_compacted || is_old) return fail_expired(*exchange, page.start_after);
    return when_reached(exchange, at,
                        [this, exchange, page = std::move(page)]() mutable { show(exchange, std::move(page)); });
  }
  const store::Revision version = options->version.value_or(store::Revision(0));
  const bool exact = options->match == VersionMatch::kExact ||
                     (options->match == VersionMatch::kUnset && options->limit != 0 && version != store::Revision(0));
  when_reached(exchange, version, [this, exchange, exact, version, page = std::move(page)]() mutable {
    if (exact) page.at = version;
    show(exchange, std::move(page));
  });
}

/// Visits the present objects in key order from just behind `start_after`, that the selection may match, until `visit`
/// returns false; if a name or a node narrows it, only those.
void Reader::visit_candidates(const ResourceCache& cache, const Selection& selection, std::string_view start_after,
                              const std::function<bool(const ObjectPtr&)>& visit) {
  const auto node = selection.first_field();
  if (const auto name = selection.name(); name && (!selection.ns.empty() || !cache.resource().namespaced())) {
    const ObjectPtr object = cache.find(object_key(selection.ns, *name));
    if (object && object->key > start_after) visit(object);
  } else if (node && cache.indexes_nodes()) {
    const ObjectMap* there = cache.on_node(*node);
    if (there == nullptr) return;
    for (auto at = there->upper_bound(start_after); at != there->end(); ++at) {
      if (!visit(at->second)) return;
    }
  } else {
    cache.visit(selection.key_prefix(), start_after, visit);
  }
}

api::StatusResult<std::vector<ObjectPtr>> Reader::select(const Resource& resource, const Selection& selection) const {
  std::vector<ObjectPtr> found;
  const std::size_t steps_of_object = selection.steps();
  std::size_t steps = 0;
  visit_candidates(core_.cache.of(resource), selection, {}, [&](const ObjectPtr& object) {
    steps += steps_of_object;
    if (steps > kSelectStepsMax) return false;
    if (selection.matches(*object)) found.push_back(object);
    return true;
  });
  if (steps > kSelectStepsMax) return too_long_selector();
  return found;
}

/// True if the page visits more than kLongList objects, or more than kLongListBytes of them.
bool Reader::visits_many(const ResourceCache& cache, const Page& page) {
  const bool first_ones = page.selection.is_everything() && page.limit != 0;
  ListSize size;
  visit_candidates(cache, page.selection, page.start_after, [&](const ObjectPtr& object) {
    if (first_ones && size.objects == page.limit) return false;
    size.add(object->text->size());
    return !size.is_long();
  });
  return size.is_long();
}

std::shared_ptr<ObjectSource> Reader::objects_of(const Exchange& exchange, const Page& page, store::Revision at) {
  ResourceCache& cache = core_.cache.of(*exchange.route.resource);
  const Selection& selection = page.selection;
  const bool is_narrow = (selection.name() && (!selection.ns.empty() || !cache.resource().namespaced())) ||
                         (selection.first_field() && cache.indexes_nodes());
  if (is_narrow && at == cache.origin().revision()) {
    std::vector<ObjectPtr> objects;
    visit_candidates(cache, selection, page.start_after, [&](const ObjectPtr& object) {
      objects.push_back(object);
      return true;
    });
    return std::make_shared<GivenObjects>(std::move(objects));
  }
  const bool twice = ListJob::passes_twice(exchange, page.rendering, page.limit);
  return PinnedObjects::make(cache, at, selection.key_prefix(), page.start_after,
                             twice ? PinnedObjects::Passes::kTwo : PinnedObjects::Passes::kOne);
}

void Reader::show(const ExchangePtr& exchange, Page page) {
  const ResourceCache& cache = core_.cache.of(*exchange->route.resource);
  const bool is_long = visits_many(cache, page);
  if (is_long && !long_reads_.has_place(reader_of(*exchange))) {
    const bool waits = long_reads_.wait(reader_of(*exchange), [this, exchange, page = std::move(page)] {
      if (!exchange->finished()) show(exchange, page);
    });
    if (!waits) exchange->fail(api::retry_status(ErrorCode::kTooManyRequests, "too many long lists are waiting", 1));
    return;
  }
  const store::Revision present = cache.origin().revision();
  const store::Revision at = page.at.value_or(present);
  if (at != present && !cache.covers(at)) return show_from_store(exchange, std::move(page));
  warn_of_unreadable(*exchange, cache, page.selection.key_prefix());
  if (has_webhook(*exchange->route.resource)) return show_converted(exchange, std::move(page), at, is_long);
  std::shared_ptr<ObjectSource> objects = objects_of(*exchange, page, at);
  begin(ListJob(exchange, {std::move(page.rendering), std::move(page.selection), page.limit, at, page.began},
                std::move(objects)),
        is_long);
}

/// A list of a kind with a conversion webhook: selectors are compared with converted objects.
void Reader::show_converted(const ExchangePtr& exchange, Page page, store::Revision at, bool is_long) {
  std::vector<ObjectPtr> objects;
  objects_of(*exchange, page, at)->visit([&objects](const ObjectPtr& object) {
    objects.push_back(object);
    return true;
  });
  // Objects behind the page are counted only.
  const bool is_cut = page.limit != 0 && page.selection.is_everything() && objects.size() > page.limit;
  auto behind = std::make_shared<std::vector<ObjectPtr>>();
  if (is_cut) {
    const auto end = objects.begin() + static_cast<std::ptrdiff_t>(page.limit);
    behind->assign(end, objects.end());
    objects.erase(end, objects.end());
  }
  core_.converter->convert(*exchange->route.resource, std::move(objects), ObjectConverter::Of::kList,
                           [this, exchange, page = std::move(page), at, is_long, behind](Conversion converted) mutable {
                             show_page(exchange, std::move(page), at, is_long, *behind, std::move(converted));
                           });
}

/// `behind`: objects after the page, which are counted only.
void Reader::show_page(const ExchangePtr& exchange, Page page, store::Revision at, bool is_long,
                       const std::vector<ObjectPtr>& behind, Conversion converted) {
  if (exchange->finished()) return;
  if (!converted) return exchange->fail(converted.error());
  std::vector<ObjectPtr> objects = *std::move(converted);
  objects.insert(objects.end(), behind.begin(), behind.end());
  begin(ListJob(exchange, {std::move(page.rendering), std::move(page.selection), page.limit, at, page.began},
                std::make_shared<GivenObjects>(std::move(objects))),
        is_long);
}

void Reader::show_from_store(const ExchangePtr& exchange, Page page) {
  // Objects of old revisions are not converted.
  if (has_webhook(*exchange->route.resource)) return fail_expired(*exchange, page.start_after);
  const Resource& resource = core_.cache.of(*exchange->route.resource).resource();
  store::Range range{resource.storage + page.selection.key_prefix(),
                     page.start_after.empty() ? std::string() : resource.storage + page.start_after, 0, page.at};
  origin_of(*exchange).store().range(std::move(range), [this, exchange, &resource, page = std::move(page)](
                                                           Result<store::RangeResult> result) mutable {
    if (exchange->finished()) return;
    if (!result) {
      const bool gone = result.error().code == ErrorCode::kExpired;
      return gone ? fail_expired(*exchange, page.start_after) : exchange->fail(result.error());
    }
    ListSize size;
    for (const store::Entry& entry : result->entries) size.add(entry.value->size());
    begin(ListJob(exchange, {std::move(page.rendering), std::move(page.selection), page.limit, *page.at, page.began},
                  resource, std::move(result->entries)),
          size.is_long());
  });
}

void Reader::begin(ListJob job, bool is_long) {
  const auto held = std::make_shared<ListJob>(std::move(job));
  held->share(items_);
  std::optional<LongReads::Id> place;
  if (is_long) {
    held->keep_pace();
    const Exchange& exchange = *held->exchange();
    place = long_reads_.take(reader_of(exchange), [weak = std::weak_ptr(held)] {
      if (const auto late = weak.lock(); late && late->exchange()->in_pieces()) late->exchange()->cut();
    });
    held->on_drop([this, id = *place] {
      paused_.erase(id);
      long_reads_.give_back(id);
    });
  }
  run_slices(held, place);
}

void Reader::run_slices(const std::shared_ptr<ListJob>& job, std::optional<LongReads::Id> place) {
  slices_.add([this, job, place](SliceBudget& budget) {
    switch (job->step(budget, core_.now.wall)) {
      case ListJob::Step::kMore:
        return false;
      case ListJob::Step::kWaits:
        wait_for_client(job, *place);
        return true;
      case ListJob::Step::kDone:
        if (place) long_reads_.give_back(*place);
        return true;
    }
    return true;
  });
}

void Reader::wait_for_client(const std::shared_ptr<ListJob>& job, LongReads::Id place) {
  long_reads_.pause(place);
  paused_.emplace(place, job);
  // The callback is called between events and without a time; the timer provides one.
  job->exchange()->when_below(kResumeBelow,
                              [this, place] { core_.timers.at(core_.now.mono, [this, place] { resume(place); }); });
}

void Reader::resume(LongReads::Id place) {
  const auto job = paused_.extract(place);
  if (!job) return;
  long_reads_.resume(place);
  run_slices(job.mapped(), place);
}

void Reader::answer(const ExchangePtr& exchange, const Rendering& rendering, std::vector<ObjectPtr> objects) {
  core_.converter->convert(*exchange->route.resource, std::move(objects), ObjectConverter::Of::kList,
                           [this, exchange, rendering](Conversion converted) {
                             answer_converted(exchange, rendering, std::move(converted));
                           });
}

void Reader::answer_converted(const ExchangePtr& exchange, const Rendering& rendering, Conversion objects) {
  if (exchange->finished()) return;
  if (!objects) return exchange->fail(objects.error());
  ListSize size;
  for (const ObjectPtr& object : *objects) size.add(object->text->size());
  const store::Revision at = origin_of(*exchange).revision();
  begin(ListJob(exchange, {rendering, {}, 0, at}, std::make_shared<GivenObjects>(*std::move(objects))), size.is_long());
}

}  // namespace spillway::apiserver
