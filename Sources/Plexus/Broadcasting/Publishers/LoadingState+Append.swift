extension LoadingState {
  /// Records a page that the current load has brought: behind the others, or in place of them.
  mutating func append<Item>(_ page: Page<Item, Cursor>) where Value == Pages<Item> {
    let known = load?.continues == true ? current.value?.items ?? [] : []
    replaceNext(by: page.next)
    update(Pages(items: known + page.items, isComplete: page.next == nil), at: loadedAt)
  }
}
