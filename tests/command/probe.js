(() => {
  const root = document.documentElement;
  const numbers = (text) => text.match(/[\d.]+(e-?\d+)?/g).map(Number);
  const colour = (text) => {
    const parts = numbers(text);
    const rgb = text.startsWith("color(") ? parts.slice(0, 3) : parts.slice(0, 3).map((part) => part / 255);
    return { rgb, alpha: parts.length > 3 ? parts[3] : 1 };
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const paper = (element) => {
    for (let place = element; place; place = place.parentElement) {
      const found = colour(getComputedStyle(place).backgroundColor);
      if (found.alpha === 1) return found.rgb;
    }
    return [1, 1, 1];
  };
  const under = (element) => {
    const shape = element.closest(".flag")?.querySelector("rect, circle");
    const pill = element.classList.contains("relation") && element.parentElement.querySelector(".pill");
    return shape || pill ? colour(getComputedStyle(shape || pill).fill).rgb : paper(element);
  };
  const faint = () => {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let count = 0;
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      if (!walker.currentNode.data.trim() || ["SCRIPT", "STYLE", "title"].includes(element.tagName)) continue;
      count += 1;
      const style = getComputedStyle(element);
      const isSvg = element.namespaceURI.endsWith("svg");
      const got = contrast(colour(isSvg ? style.fill : style.color).rgb, isSvg ? under(element) : paper(element));
      if (got < 4.5) found.push(`${got.toFixed(2)} ${walker.currentNode.data.trim().slice(0, 40)}`);
    }
    return [found, count];
  };
  const height = root.scrollHeight;  // As it opens: with its details closed.
  for (const each of document.querySelectorAll("details")) each.open = true;
  const contrasts = {};
  let texts = 0;
  for (const theme of ["light", "dark"]) {
    root.dataset.theme = theme;
    [contrasts[theme], texts] = faint();
  }
  document.querySelector("[data-jump]")?.click();
  const links = Array.from(document.querySelectorAll('a[href^="#"]'));
  const missing = links.map((link) => link.getAttribute("href").slice(1)).filter((name) => !document.getElementById(name));
  parent.document.documentElement.dataset.probe = JSON.stringify({
    width: innerWidth,
    height,
    scroll_width: root.scrollWidth + innerWidth - root.clientWidth,
    contrasts,
    texts,
    script_count: document.scripts.length - 1,
    is_taken_over: "taken" in window,
    zoomed: document.querySelector(".plot")?.getAttribute("viewBox") ?? "",
    is_scripted: root.classList.contains("js"),
    open_anchors: links.length,
    missing_anchors: missing,
  });
})();
