// Shows what is known of the unit under the pointer, and marks it wherever it is drawn.
(() => {
  const tip = document.getElementById("tip");
  let lit = [];
  const about = (mark) => {
    if (mark.dataset.tip) return mark.dataset.tip;
    const row = document.getElementById(mark.dataset.u);
    const table = row.closest("table");
    const titles = table.tHead.rows[0].cells;
    const lines = [...row.cells].map((cell, column) => `${titles[column].textContent} ${cell.textContent}`);
    return `${table.dataset.layer}, ${lines.join("\n")}`;
  };
  const hide = () => {
    tip.hidden = true;
    lit.forEach((mark) => mark.classList.remove("lit"));
    lit = [];
  };
  const show = (event) => {
    const mark = event.target.closest && event.target.closest("[data-u], [data-tip]");
    if (!mark) return hide();
    if (!lit.includes(mark)) {
      hide();
      lit = mark.dataset.u ? [...document.querySelectorAll(`[data-u="${mark.dataset.u}"]`)] : [mark];
      lit.forEach((other) => other.classList.add("lit"));
      tip.textContent = about(mark);
      tip.hidden = false;
    }
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - width - 8);
    const below = event.clientY + 18;
    const top = below + height > window.innerHeight - 8 ? event.clientY - height - 12 : below;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("pointerleave", hide);
  document.addEventListener("scroll", hide, { passive: true });
})();
